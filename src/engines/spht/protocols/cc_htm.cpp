// cc-HTM [SPHT §2; §4, footnote 4]. Threads make their logs durable, and one thread in the background applies them to persistent memory, in the
// order of their timestamps. With immediate durability a commit returns after its transaction has been applied.
//
// The checkpoint thread applies: into the page copies that the next epoch will commit. It moves the pool's marker with them, in one fence,
// so that the logs of what was applied count until then. The library's own stores are not waited for, and are left to that epoch.

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>

#include "core/canary.hpp"
#include "engines/spht/in_place.hpp"
#include "engines/spht/protocols/protocol.hpp"
#include "engines/spht/transactional_memory.hpp"
#include "logs/durable_marker.hpp"

namespace stillpoint::spht {

namespace {

class CcHtm final : public CommitProtocol {
public:
    explicit CcHtm(TransactionalMemory& memory) noexcept : CommitProtocol(memory) {}

    Result<void> start() override
    {
        marker_.emplace(memory_.medium(), memory_.marker_offset(), memory_.order());
        marker_->start();
        return {};
    }

    bool make_durable(Committing& commit, Timestamp timestamp) noexcept override
    {
        const bool intact = memory_.persist_log();
        queue(commit.number, timestamp, &commit.record);
        logs::CommitOrder::persisted(commit.slot, timestamp);
        call_applier();
        return intact && (is_removed(Canary::cc_htm_wait) || await_durable(timestamp));
    }

    Timestamp commit_stores(Committing& commit) noexcept override
    {
        announce(commit);
        const Timestamp timestamp = memory_.clock().now();
        log(commit, timestamp);
        static_cast<void>(memory_.persist_log());
        logs::CommitOrder::persisted(commit.slot, timestamp);
        return timestamp;
    }

    bool finish_stores(Committing& commit, Timestamp timestamp) noexcept override
    {
        queue(commit.number, timestamp, nullptr);
        call_applier();
        return await_durable(timestamp);
    }

    Timestamp replayable() noexcept override { return logged_moment(); }

    /// Goes on while transactions come: to be woken takes longer than to apply one.
    bool apply(InPlace& copies) noexcept override
    {
        constexpr unsigned turns_max = 500;
        applies_.store(true, std::memory_order_seq_cst);
        for (unsigned turns = 0; turns < turns_max && !memory_.space().is_getting_full();) {
            if (apply_queued(copies)) {
                turns = 0;
            } else {
                logs::wait_turn(turns);
            }
        }
        applies_.store(false, std::memory_order_seq_cst);
        static_cast<void>(apply_queued(copies));
        return true;
    }

private:
    struct alignas(cache_line_bytes) Queued {
        std::atomic<Timestamp> timestamp{0};  ///< 0: there is none
        const logs::RecordBuilder* record = nullptr;  ///< nullptr: left to the next epoch
    };
    struct Taken {
        Timestamp timestamp;
        const logs::RecordBuilder* record;
    };

    /// A thread has one transaction at a time that waits.
    void queue(std::uint32_t slot, Timestamp timestamp, const logs::RecordBuilder* record) noexcept
    {
        queued_[slot].record = record;
        queued_[slot].timestamp.store(timestamp, std::memory_order_release);
    }

    void call_applier() noexcept
    {
        std::atomic_thread_fence(std::memory_order_seq_cst);
        if (!applies_.load(std::memory_order_seq_cst)) {
            memory_.request_replay();
        }
    }

    /// Applies, in order, all that are queued and before which none is missing. False: there are none.
    [[nodiscard]] bool apply_queued(InPlace& copies) noexcept
    {
        const std::uint32_t count = memory_.order().slot_count();
        const auto is_queued = [](const Queued& one) { return one.timestamp.load(std::memory_order_acquire) != 0; };
        if (std::none_of(queued_.begin(), queued_.begin() + count, is_queued)) {
            return false;
        }
        const Timestamp moment = logged_moment();
        std::size_t taken = 0;
        for (std::uint32_t slot = 0; slot < count; ++slot) {
            const Timestamp timestamp = queued_[slot].timestamp.load(std::memory_order_acquire);
            if (timestamp != 0 && timestamp <= moment) {
                taken_[taken++] = {timestamp, queued_[slot].record};
                queued_[slot].timestamp.store(0, std::memory_order_relaxed);
            }
        }
        const auto end = taken_.begin() + static_cast<std::ptrdiff_t>(taken);
        std::sort(taken_.begin(), end, [](const Taken& a, const Taken& b) { return a.timestamp < b.timestamp; });
        for (auto one = taken_.begin(); one != end; ++one) {
            if (one->record != nullptr) {
                copies.apply(*one->record);
            }
        }
        return taken != 0 && marker_->raise((end - 1)->timestamp, false);
    }

    std::optional<logs::DurableMarker> marker_;
    std::array<Queued, logs::CommitOrder::slots_max> queued_{};
    std::array<Taken, logs::CommitOrder::slots_max> taken_{};
    alignas(128) std::atomic<bool> applies_{false};
};

}  // namespace

std::unique_ptr<CommitProtocol> make_cc_htm(TransactionalMemory& memory) { return std::make_unique<CcHtm>(memory); }

}  // namespace stillpoint::spht

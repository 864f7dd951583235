// cc-HTM [SPHT §2; §4, footnote 4]. Threads make their logs durable, and one thread in the background applies them to persistent memory, in
// the order of their timestamps. With immediate durability a commit returns after its transaction has been applied.
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
#include "os/clock.hpp"

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

    bool finish_stores(Committing& /*commit*/, Timestamp timestamp) noexcept override
    {
        Timestamp awaited = stores_awaited_.load(std::memory_order_relaxed);
        while (awaited < timestamp && !stores_awaited_.compare_exchange_weak(awaited, timestamp, std::memory_order_release)) {
        }
        call_applier();
        return await_durable(timestamp);
    }

    Timestamp replayable() noexcept override { return logged_moment(); }

    /// Goes on while transactions come: to be woken takes longer than to apply one. Not for long: the caller has other work.
    bool apply(InPlace& copies) noexcept override
    {
        constexpr unsigned turns_max = 500;
        constexpr std::uint64_t apply_max_ns = 10'000'000;
        const std::uint64_t end_ns = os::monotonic_ns() + apply_max_ns;
        applies_.store(true, std::memory_order_seq_cst);
        for (unsigned turns = 0; turns < turns_max && !memory_.space().is_getting_full() && os::monotonic_ns() < end_ns;) {
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
        const logs::RecordBuilder* record = nullptr;
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
            memory_.wake_applier();
        }
    }

    /// Applies, in order, all that are queued; then none before them is missing. False: there are none.
    [[nodiscard]] bool apply_queued(InPlace& copies) noexcept
    {
        const Timestamp stores_awaited = stores_awaited_.load(std::memory_order_acquire);
        Timestamp newest = stores_awaited > memory_.order().durable() ? stores_awaited : 0;
        for (std::uint32_t slot = 0; slot < memory_.order().slot_count(); ++slot) {
            newest = std::max(newest, queued_[slot].timestamp.load(std::memory_order_acquire));
        }
        if (newest == 0) {
            return false;
        }
        while (memory_.clock().now() < newest) {  // A timestamp is rounded up.
        }
        const Timestamp moment = logged_moment();
        std::size_t taken = 0;
        if (newest == stores_awaited) {
            taken_[taken++] = {newest, nullptr};  // Their words are left to the next epoch.
        }
        for (std::uint32_t slot = 0; slot < memory_.order().slot_count(); ++slot) {  // Perhaps more than before.
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
        return marker_->raise((end - 1)->timestamp, false);
    }

    std::optional<logs::DurableMarker> marker_;
    std::array<Queued, logs::CommitOrder::slots_max> queued_{};
    std::array<Taken, logs::CommitOrder::slots_max + 1> taken_{};
    std::atomic<Timestamp> stores_awaited_{0};  ///< newest of the library's stores that a thread waits for
    alignas(128) std::atomic<bool> applies_{false};
};

}  // namespace

std::unique_ptr<CommitProtocol> make_cc_htm(TransactionalMemory& memory) { return std::make_unique<CcHtm>(memory); }

}  // namespace stillpoint::spht

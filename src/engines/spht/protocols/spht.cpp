// SPHT [SPHT §3.1, Algorithm 1]. Logs become durable in any order. One marker in the pool says up to which timestamp all are, and one
// move of it acknowledges every transaction that waits.
//
// Beyond the paper: a transaction whose reads, and whatever it replaces, were all durable when it got its timestamp depends on nothing that
// a crash may lose. Its record says so, counts as soon as it is whole, and needs neither the marker nor a wait for others. Option
// `markers=always` does as the paper does.
//
// Such a transaction also makes its record durable while its lines are locked, where the executor has such locks: then whatever others see
// is durable, and their transactions stand alone too. A transaction in hardware cannot fence before it is seen; one in software can, as
// PSTM's do. Option `visible=stored` does as the paper does.

#include <optional>

#include "core/canary.hpp"
#include "engines/spht/protocols/protocol.hpp"
#include "engines/spht/spht_layout.hpp"
#include "engines/spht/transactional_memory.hpp"
#include "logs/durable_marker.hpp"

namespace stillpoint::spht {

namespace {

class Spht final : public CommitProtocol {
public:
    explicit Spht(TransactionalMemory& memory) noexcept : CommitProtocol(memory) {}

    Result<void> start() override
    {
        if (memory_.is_byte_addressable()) {
            marker_.emplace(memory_.medium(), memory_.marker_offset(), memory_.order());
            marker_->start();
            may_stand_alone_ = memory_.spares_markers();
            visibility_ = memory_.visibility();
        }
        return {};
    }

    void announce(Committing& commit) noexcept override
    {
        memory_.commit_links().announce(commit.slot, commit.search, commit.log.next_position(), memory_.clock().lower_bound());
    }

    bool settle(Committing& commit, Timestamp timestamp) noexcept override
    {
        memory_.commit_links().note_timestamp(commit.search, timestamp);
        commit.stands_alone = may_stand_alone_ && depends_on_durable_alone(commit);
        logs::CommitOrder::settle(commit.slot, timestamp, !commit.stands_alone);
        commit.is_logged = commit.stands_alone && becomes_durable_first(commit);
        if (commit.is_logged) {
            append(commit, timestamp);
            const bool intact = memory_.persist_log();
            logs::CommitOrder::persisted(commit.slot, timestamp);
            if (intact) {
                logs::CommitOrder::close(commit.slot);
            }
        }
        return true;
    }

    void log(Committing& commit, Timestamp timestamp) noexcept override
    {
        if (!commit.is_logged) {
            append(commit, timestamp);
        }
    }

    bool make_durable(Committing& commit, Timestamp timestamp) noexcept override
    {
        if (commit.is_logged) {
            return !memory_.has_failed() && !memory_.medium().has_lost_pages();
        }
        return persist(commit, timestamp);
    }

    /// The transaction that wrote it is about to be durable, by itself or by the marker.
    bool await(Timestamp timestamp) noexcept override
    {
        if (!marker_) {
            return memory_.await_group(timestamp);
        }
        constexpr unsigned turns_max = 2000;
        const Medium& medium = memory_.medium();
        for (unsigned turns = 0; turns < turns_max && !is_known_durable(timestamp) && !medium.has_lost_pages();) {
            logs::wait_turn(turns);
        }
        if (memory_.order().durable() < timestamp && !medium.has_lost_pages()) {
            return memory_.seal().has_value();
        }
        return !medium.has_lost_pages();
    }

    Timestamp commit_stores(Committing& commit) noexcept override
    {
        announce(commit);
        commit.stands_alone = false;
        const Timestamp timestamp = memory_.clock().now();
        memory_.commit_links().note_timestamp(commit.search, timestamp);
        append(commit, timestamp);
        const bool intact = memory_.persist_log();
        memory_.commit_links().scan_others(commit.slot, commit.search);
        // Not `updates`: no thread waits for this record, so it moves no marker.
        logs::CommitOrder::persisted(commit.slot, timestamp);
        if (memory_.commit_links().direction()) {
            static_cast<void>(memory_.order().await_preceding(&commit.slot, timestamp));
        }
        memory_.commit_links().finish(commit.slot, commit.search, intact);
        return timestamp;
    }

    bool finish_stores(Committing& commit, Timestamp timestamp) noexcept override
    {
        if (!marker_) {
            return memory_.await_group(timestamp);
        }
        return marker_->raise(timestamp, memory_.order().await_preceding(&commit.slot, timestamp));
    }

    bool leaves_stores_to_later_records() const noexcept override { return true; }

private:
    void append(Committing& commit, Timestamp timestamp) noexcept
    {
        commit.position = commit.log.append(commit.record, timestamp, 0, commit.stands_alone ? logs::stands_alone : 0);
    }
    /// With few threads: on a line that many want, the fences of all would follow each other, where they can go on at a time. A long record
    /// would keep its lines locked for long.
    [[nodiscard]] bool becomes_durable_first(const Committing& commit) noexcept
    {
        constexpr std::uint32_t threads_max = 8;
        constexpr std::uint64_t words_max = 512;
        const bool few = memory_.log_count() - 1 <= threads_max && commit.record.words() <= words_max;
        return commit.locks_lines && (visibility_ == Visibility::when_durable || (visibility_ == Visibility::by_threads && few));
    }
    [[nodiscard]] bool persist(Committing& commit, Timestamp timestamp) noexcept
    {
        const bool intact = memory_.persist_log();
        memory_.commit_links().scan_others(commit.slot, commit.search);
        logs::CommitOrder::persisted(commit.slot, timestamp);
        const bool durable = !memory_.has_failed() && (intact ? commit.stands_alone || finish_stores(commit, timestamp) : await(timestamp));
        memory_.commit_links().finish(commit.slot, commit.search, intact && durable);
        if (durable) {
            logs::CommitOrder::close(commit.slot);
        }
        return durable;
    }
    /// Also by transactions that have moved no marker.
    [[nodiscard]] bool is_known_durable(Timestamp timestamp) noexcept
    {
        logs::CommitOrder& order = memory_.order();
        if (order.durable() < timestamp && may_stand_alone_) {
            order.find_durable(memory_.clock().moment(), order.slot(TransactionalMemory::stores_slot));
        }
        return order.durable() >= timestamp;
    }
    /// The library's own stores have no versions: the transaction may depend on the newest of them.
    [[nodiscard]] bool depends_on_durable_alone(const Committing& commit) noexcept
    {
        if (is_removed(Canary::stands_alone)) {
            return true;
        }
        logs::CommitOrder& order = memory_.order();
        const auto& stores = order.slot(TransactionalMemory::stores_slot).stamp;
        return commit.depends_on != logs::timestamp_max && commit.record.words() <= logs::record_words_max &&
               stores.load(std::memory_order_acquire) >> 1 <= order.marked() && is_known_durable(commit.depends_on);
    }

    std::optional<logs::DurableMarker> marker_;
    bool may_stand_alone_ = false;
    Visibility visibility_ = Visibility::when_stored;
};

}  // namespace

std::unique_ptr<CommitProtocol> make_spht(TransactionalMemory& memory) { return std::make_unique<Spht>(memory); }

}  // namespace stillpoint::spht

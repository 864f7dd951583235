// SPHT [SPHT §3.1, Algorithm 1]. Logs become durable in any order. One marker in the pool says up to which timestamp all are, and one
// move of it acknowledges every transaction that waits.

#include <optional>

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
        }
        return {};
    }

    void announce(Committing& commit) noexcept override
    {
        memory_.links().announce(commit.slot, commit.search, commit.log.next_position(), memory_.clock().now());
    }

    bool settle(Committing& commit, Timestamp timestamp) noexcept override
    {
        memory_.links().note_timestamp(commit.search, timestamp);
        logs::CommitOrder::settle(commit.slot, timestamp);
        return true;
    }

    bool make_durable(Committing& commit, Timestamp timestamp) noexcept override
    {
        const bool intact = memory_.persist_log();
        memory_.links().scan_others(commit.slot, commit.search);
        logs::CommitOrder::persisted(commit.slot, timestamp);
        const bool durable = !memory_.has_failed() && (intact ? finish_stores(commit, timestamp) : await(timestamp));
        memory_.links().finish(commit.slot, commit.search, intact && durable);
        return durable;
    }

    /// The transaction that wrote it is about to raise the marker, or has left that to a later one.
    bool await(Timestamp timestamp) noexcept override
    {
        if (!marker_) {
            return memory_.await_group(timestamp);
        }
        constexpr unsigned turns_max = 2000;
        const Medium& medium = memory_.medium();
        for (unsigned turns = 0; turns < turns_max && memory_.order().durable() < timestamp && !medium.has_lost_pages();) {
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
        const Timestamp timestamp = memory_.clock().now();
        memory_.links().note_timestamp(commit.search, timestamp);
        log(commit, timestamp);
        const bool intact = memory_.persist_log();
        memory_.links().scan_others(commit.slot, commit.search);
        // Not `updates`: no thread waits for this record, so it moves no marker.
        logs::CommitOrder::persisted(commit.slot, timestamp);
        if (memory_.links().direction()) {
            static_cast<void>(memory_.order().await_preceding(&commit.slot, timestamp));
        }
        memory_.links().finish(commit.slot, commit.search, intact);
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
    std::optional<logs::DurableMarker> marker_;
};

}  // namespace

std::unique_ptr<CommitProtocol> make_spht(TransactionalMemory& memory) { return std::make_unique<Spht>(memory); }

}  // namespace stillpoint::spht

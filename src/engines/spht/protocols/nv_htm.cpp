// NV-HTM [SPHT §2, Figure 1a]. Each record has a commit marker of its own, and markers follow each other: a transaction writes its marker
// when those of all earlier ones are durable. So commits wait for one write back after the other.

#include "core/canary.hpp"
#include "engines/spht/protocols/protocol.hpp"
#include "engines/spht/transactional_memory.hpp"

namespace stillpoint::spht {

namespace {

class NvHtm final : public CommitProtocol {
public:
    explicit NvHtm(TransactionalMemory& memory) noexcept : CommitProtocol(memory) {}

    bool make_durable(Committing& commit, Timestamp timestamp) noexcept override
    {
        const bool is_logged = memory_.persist_log();
        // For one with the same timestamp, which does not wait for this one's marker.
        commit.slot.updates.store(true, std::memory_order_release);
        if (!is_removed(Canary::nv_htm_wait)) {
            memory_.order().await_markers_before(commit.number, timestamp);
        }
        return write_own_marker(commit, timestamp, is_logged);
    }

    bool settle(Committing& commit, Timestamp timestamp) noexcept override
    {
        logs::CommitOrder::settle_without_log(commit.slot, timestamp);
        return true;
    }

    Timestamp commit_stores(Committing& commit) noexcept override
    {
        announce(commit);
        const Timestamp timestamp = memory_.clock().now();
        static_cast<void>(settle(commit, timestamp));
        log(commit, timestamp);
        static_cast<void>(make_durable(commit, timestamp));
        return timestamp;
    }
};

}  // namespace

std::unique_ptr<CommitProtocol> make_nv_htm(TransactionalMemory& memory) { return std::make_unique<NvHtm>(memory); }

}  // namespace stillpoint::spht

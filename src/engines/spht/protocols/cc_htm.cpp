// cc-HTM [SPHT §2; §4, footnote 4]. Threads make their logs durable, and one thread in the background applies them in the order of their
// timestamps. With immediate durability a commit returns after its transaction has been applied.
//
// What applies here is a round of replay: the transactions are then in page copies that an epoch has committed, and their log records are
// done with. So no record counts after a crash.

#include "core/canary.hpp"
#include "engines/spht/protocols/protocol.hpp"
#include "engines/spht/transactional_memory.hpp"

namespace stillpoint::spht {

namespace {

class CcHtm final : public CommitProtocol {
public:
    explicit CcHtm(TransactionalMemory& memory) noexcept : CommitProtocol(memory) {}

    bool make_durable(Committing& commit, Timestamp timestamp) noexcept override
    {
        const bool intact = memory_.persist_log();
        logs::CommitOrder::persisted(commit.slot, timestamp);
        memory_.request_replay();
        return intact && (is_removed(Canary::cc_htm_wait) || await_durable(timestamp));
    }

    /// The round that has it may not have been asked for.
    bool await(Timestamp timestamp) noexcept override
    {
        if (memory_.order().durable() < timestamp) {
            memory_.request_replay();
        }
        return await_durable(timestamp);
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

    Timestamp replayable() noexcept override { return logged_moment(); }

    void replayed(Timestamp timestamp) noexcept override { memory_.order().raise_durable(timestamp); }
};

}  // namespace

std::unique_ptr<CommitProtocol> make_cc_htm(TransactionalMemory& memory) { return std::make_unique<CcHtm>(memory); }

}  // namespace stillpoint::spht

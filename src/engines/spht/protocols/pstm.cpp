// PSTM [SPHT §4]: a software transactional memory with the redo log of Mnemosyne. The record is durable before anything is stored, while
// the lines that are written are locked: all that another transaction can see is durable, so no transaction waits for another one. A record
// that is whole counts: its checksum does what Mnemosyne's torn bits do, and one fence is enough.
//
// A shared counter gives the timestamps, as in TinySTM. Lines are locked at the commit, by the executor that all protocols share, and not
// at the first write.

#include "core/canary.hpp"
#include "engines/spht/protocols/protocol.hpp"
#include "engines/spht/transactional_memory.hpp"

namespace stillpoint::spht {

namespace {

class Pstm final : public CommitProtocol {
public:
    explicit Pstm(TransactionalMemory& memory) noexcept : CommitProtocol(memory) {}

    bool settle(Committing& commit, Timestamp timestamp) noexcept override
    {
        CommitProtocol::log(commit, timestamp);
        if (!is_removed(Canary::pstm_fence)) {
            memory_.medium().fence();
        }
        logs::CommitOrder::persisted(commit.slot, timestamp);
        return true;
    }

    void log(Committing& /*commit*/, Timestamp /*timestamp*/) noexcept override {}

    bool make_durable(Committing& /*commit*/, Timestamp /*timestamp*/) noexcept override { return !memory_.medium().has_lost_pages(); }

    bool await(Timestamp /*timestamp*/) noexcept override { return !memory_.medium().has_lost_pages(); }

    Timestamp commit_stores(Committing& commit) noexcept override
    {
        announce(commit);
        const Timestamp timestamp = memory_.clock().next();
        static_cast<void>(settle(commit, timestamp));
        return timestamp;
    }

    /// Only the replayer looks at the order of those that commit.
    Timestamp replayable() noexcept override { return logged_moment(); }
};

}  // namespace

std::unique_ptr<CommitProtocol> make_pstm(TransactionalMemory& memory) { return std::make_unique<Pstm>(memory); }

}  // namespace stillpoint::spht

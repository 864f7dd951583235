// Crafty [SPHT §2]: nondestructive undo logging. A first run of a transaction logs the old values of what it would write and stores
// nothing; the undo record is made durable; then, if no transaction has committed since, the writes are done and the global clock moves.
// Otherwise the body runs again, and must write the same; if it does not, all of it begins again. Commit markers follow each other, as in
// NV-HTM.
//
// Crafty works in persistent memory itself. Here memory is an image in DRAM, and what the pool has of it is page copies and a log:
//
//   Crafty                                       | here
//   the first hardware transaction, undone       | the body, with its write set; lines locked, validated, unlocked
//   the undo log, flushed                        | a record of the old values, with a timestamp of its own, and a fence
//   the second one: clock, writes, clock         | lines locked; clock; the words stored into the image; clock
//   written lines and marker, flushed, one fence | the redo record; after those before it the marker; one fence
//   recovery undoes what has no marker           | it does not count, and nothing in the pool has it
//
// To replay an undo record changes nothing: as of its timestamp the words have these values.

#include <atomic>

#include "arch/checksum.hpp"
#include "core/canary.hpp"
#include "engines/spht/protocols/protocol.hpp"
#include "engines/spht/transactional_memory.hpp"
#include "os/reserved_array.hpp"

namespace stillpoint::spht {

namespace {

class Crafty final : public CommitProtocol {
public:
    explicit Crafty(TransactionalMemory& memory) noexcept : CommitProtocol(memory) {}

    Result<void> start() override { return first_runs_.reserve(logs::CommitOrder::slots_max, "the first runs of transactions"); }

    bool logs_old_values() const noexcept override { return true; }

    /// The log phase, unless this is the second run and it writes the same.
    bool prepare(Transaction& transaction, Committing& commit) noexcept override
    {
        FirstRun& first = first_runs_[commit.number];
        first.began_as_of = transaction.began_as_of();
        const std::uint64_t digest = checksum64(commit.record.payload(), commit.record.words() * 8, 0);
        first.is_confirmed = transaction.runs_alone() || (transaction.attempts() > 1 && first.digest == digest);
        if (first.is_confirmed) {
            return true;
        }
        first.digest = digest;
        return log_old_values(transaction, commit);
    }

    /// The redo phase, or the validate phase.
    bool settle(Committing& commit, Timestamp timestamp) noexcept override
    {
        const FirstRun& first = first_runs_[commit.number];
        Timestamp newest = newest_commit_.load(std::memory_order_acquire);
        do {
            if (newest >= first.began_as_of && !first.is_confirmed) {
                return false;
            }
        } while (newest < timestamp && !newest_commit_.compare_exchange_weak(newest, timestamp, std::memory_order_acq_rel));
        logs::CommitOrder::settle_without_log(commit.slot, timestamp);
        return true;
    }

    bool make_durable(Committing& commit, Timestamp timestamp) noexcept override
    {
        if (commit.record.words() > logs::record_words_max) {
            memory_.medium().fence();  // The marker vouches for its own part of the record.
        }
        commit.slot.updates.store(true, std::memory_order_release);
        if (!is_removed(Canary::crafty_wait)) {
            memory_.order().await_markers_before(commit.number, timestamp);
        }
        return write_own_marker(commit, timestamp, true);
    }

    Timestamp commit_stores(Committing& commit) noexcept override
    {
        announce(commit);
        const Timestamp timestamp = memory_.clock().now();
        logs::CommitOrder::settle_without_log(commit.slot, timestamp);
        log(commit, timestamp);
        static_cast<void>(make_durable(commit, timestamp));
        return timestamp;
    }

private:
    struct FirstRun {
        Timestamp began_as_of;
        std::uint64_t digest;  ///< of what it would write
        bool is_confirmed;  ///< the second run writes the same, or the transaction runs alone
    };

    [[nodiscard]] bool log_old_values(Transaction& transaction, Committing& commit) noexcept
    {
        logs::RecordBuilder& undo = transaction.undo_record();
        // Room first: no transaction waits for a lock meanwhile.
        if (!memory_.make_room(commit.log, commit.record.words())) {
            return true;  // The record of the writes finds none either, and says so.
        }
        announce(commit);
        const Timestamp timestamp = transaction.lock_and_validate();
        if (timestamp != 0) {
            transaction.build_undo_record();
        }
        if (timestamp == 0 || undo.empty()) {
            transaction.unlock();
            commit.log.cancel();
            logs::CommitOrder::withdraw(commit.slot);
            return timestamp != 0;
        }
        logs::CommitOrder::settle_without_log(commit.slot, timestamp);
        commit.log.append(undo, timestamp);
        commit.slot.updates.store(true, std::memory_order_release);
        // The next transaction that writes these lines has a later timestamp.
        while (memory_.clock().now() <= timestamp) {
        }
        transaction.unlock();
        memory_.medium().fence();
        logs::CommitOrder::persisted(commit.slot, timestamp);
        return true;
    }

    os::ReservedArray<FirstRun> first_runs_;  ///< by slot
    alignas(128) std::atomic<Timestamp> newest_commit_{0};  ///< the global clock
};

}  // namespace

std::unique_ptr<CommitProtocol> make_crafty(TransactionalMemory& memory) { return std::make_unique<Crafty>(memory); }

}  // namespace stillpoint::spht

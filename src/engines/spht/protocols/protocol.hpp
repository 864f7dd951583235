#pragma once
// CommitProtocol: how transactions become durable, and in which order. SPHT and the five systems that its paper compares it with are six
// of them, a file each [SPHT §2, Table 1]; README.md in this folder shows what they differ in. They share the executor of transactions,
// the logs, replay and recovery.
//
// All of them have immediate durability: a commit returns when its transaction, and each one that it has read from, survives a crash.

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "core/result.hpp"
#include "logs/commit_clock.hpp"
#include "logs/commit_links.hpp"
#include "logs/commit_order.hpp"
#include "logs/newest_commit.hpp"
#include "logs/record_builder.hpp"
#include "logs/redo_log.hpp"

namespace stillpoint::spht {

using logs::Timestamp;
class InPlace;
class Transaction;
class TransactionalMemory;

/// When others see what a transaction of SPHT has written, if it stands alone and its executor locks lines.
enum class Visibility : std::uint8_t {
    when_stored,
    when_durable,
    by_threads,  ///< when_durable with few threads
};

/// The parts that a commit works with: those of a thread, or of the library's own stores.
struct Committing {
    logs::CommitOrder::Slot& slot;
    logs::LinkSearch& search;
    logs::RedoLog& log;
    logs::RecordBuilder& record;
    std::uint32_t number;         ///< of the slot
    logs::Position position = 0;  ///< of the record that log() has appended
    /// The newest transaction whose effects it has read or replaces, of those that may not be durable yet, if the executor knows that.
    Timestamp depends_on = logs::timestamp_max;
    bool stands_alone = false;  ///< everything that it depends on was durable when it got its timestamp
    bool is_logged = false;  ///< by settle(): its record is durable before others see what it wrote
    bool locks_lines = false;  ///< between settle() and the stores only the lines that it writes are locked, not all memory
};

/// The steps of a commit, in this order: prepare, make_room, announce; lock, timestamp and validation by the executor; settle; the stores
/// by the executor; log, make_durable. Where it fails after make_room: cancel.
///
/// Threads: the steps by the thread that commits. Memory: no malloc after start().
class CommitProtocol {
public:
    explicit CommitProtocol(TransactionalMemory& memory) noexcept : memory_(memory) {}
    CommitProtocol(const CommitProtocol&) = delete;
    CommitProtocol& operator=(const CommitProtocol&) = delete;
    virtual ~CommitProtocol() = default;

    /// Errors: no_memory.
    [[nodiscard]] virtual Result<void> start() { return {}; }
    virtual void stop() noexcept {}
    virtual void detach_after_fork() noexcept {}

    /// Whether old values are logged before anything is stored, and hold as of the beginning: then a transaction has an undo record, and
    /// reads the clock when it begins.
    [[nodiscard]] virtual bool logs_old_values() const noexcept { return false; }

    // -- A transaction ---------------------------------------------------------------------------------
    /// Before the first lock; the record is built. False: conflict, run the body again.
    [[nodiscard]] virtual bool prepare(Transaction& transaction, Committing& commit) noexcept;
    /// Room for the record. Errors: as TransactionalMemory::make_room().
    [[nodiscard]] virtual Result<void> make_room(Committing& commit, std::uint64_t words) noexcept;
    /// From here on others wait for the transaction.
    virtual void announce(Committing& commit) noexcept;
    /// The transaction has its timestamp, its lines are locked and what it read holds; nothing is stored yet. False: conflict.
    [[nodiscard]] virtual bool settle(Committing& commit, Timestamp timestamp) noexcept;
    /// Others may see what it wrote.
    virtual void log(Committing& commit, Timestamp timestamp) noexcept;
    /// Returns when the commit may. False: nothing becomes durable any more.
    [[nodiscard]] virtual bool make_durable(Committing& commit, Timestamp timestamp) noexcept = 0;
    /// In place of the steps after make_room(): a conflict.
    virtual void cancel(Committing& commit) noexcept;
    /// The timestamp was given, and no record will have it.
    virtual void skip(Timestamp timestamp) noexcept;

    // -- Others that wait, or make something durable ------------------------------------------------------
    /// Returns when the transaction of that timestamp, which another thread has committed, is durable. False as make_durable().
    [[nodiscard]] virtual bool await(Timestamp timestamp) noexcept;
    /// The library's own stores, as a transaction of their own. Returns its timestamp.
    virtual Timestamp commit_stores(Committing& commit) noexcept = 0;
    /// Returns when those are durable. False as make_durable().
    [[nodiscard]] virtual bool finish_stores(Committing& commit, Timestamp timestamp) noexcept;
    /// Stores that have happened are durable only when a later record is.
    [[nodiscard]] virtual bool leaves_stores_to_later_records() const noexcept { return false; }

    // -- The replayer ---------------------------------------------------------------------------------------
    /// Every record up to it is in the logs, and counts.
    [[nodiscard]] virtual Timestamp replayable() noexcept;
    /// On the checkpoint thread, before each of its turns. True: commits wait for it, and a turn that one has asked for is over.
    [[nodiscard]] virtual bool apply(InPlace& copies) noexcept;

protected:
    /// The clock's present, after every record up to it is in the logs: others choose later timestamps.
    [[nodiscard]] Timestamp logged_moment() noexcept;
    /// Where the record's word for a commit marker lies in the file.
    [[nodiscard]] std::uint64_t mark_offset(logs::Position position) noexcept;
    /// Makes the record's own commit marker durable, and says that the transaction is, if `is_logged` and nothing was lost. False as
    /// make_durable(). For protocols whose markers follow each other: those before it are durable.
    [[nodiscard]] bool write_own_marker(Committing& commit, Timestamp timestamp, bool is_logged) noexcept;
    /// Returns when everything up to `timestamp` is known to be durable. False as make_durable().
    [[nodiscard]] bool await_durable(Timestamp timestamp) noexcept;

    TransactionalMemory& memory_;
};

/// A system: its name as option `protocol` has it, and what a pool needs to know of it.
struct ProtocolRow {
    std::string_view name;
    std::uint64_t pool_word;  ///< in the pool, beside the marker
    logs::CommitRule rule;  ///< which records count after a crash
    logs::ClockKind clock;
    std::unique_ptr<CommitProtocol> (*make)(TransactionalMemory& memory);
    [[nodiscard]] bool is_spht() const noexcept { return pool_word == 0; }
};

/// The name is one of the option's words.
[[nodiscard]] const ProtocolRow& protocol_called(std::string_view name) noexcept;
/// nullptr: no pool has that word.
[[nodiscard]] const ProtocolRow* protocol_of_pool(std::uint64_t pool_word) noexcept;

std::unique_ptr<CommitProtocol> make_spht(TransactionalMemory& memory);
std::unique_ptr<CommitProtocol> make_nv_htm(TransactionalMemory& memory);
std::unique_ptr<CommitProtocol> make_dude_tm(TransactionalMemory& memory);
std::unique_ptr<CommitProtocol> make_crafty(TransactionalMemory& memory);
std::unique_ptr<CommitProtocol> make_cc_htm(TransactionalMemory& memory);
std::unique_ptr<CommitProtocol> make_pstm(TransactionalMemory& memory);

}  // namespace stillpoint::spht

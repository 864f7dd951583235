#pragma once
// Reads and writes the commit records, which say what the newest durable epoch is (VER_d of [PMThreads §4.2]).

#include <optional>

#include "core/findings.hpp"
#include "core/result.hpp"
#include "pool/commit_layout.hpp"
#include "pool/pool.hpp"

namespace stillpoint {

/// Hands the record, twice, to the pair of pages of its epoch's parity, and its witness to a page of the other pair, without making it
/// durable; the record of the epoch before stays as it is. Fills parity and checksum.
[[nodiscard]] Result<void> store_commit_record(Pool& pool, CommitRecord record);

/// The newest valid record before Pool::epochs_end(), of which two of the three copies may be damaged (a remark to `findings`); empty where
/// no epoch was ever committed. Errors: pool_corrupt (records that are neither valid nor what an interrupted write leaves), io.
[[nodiscard]] Result<std::optional<CommitRecord>> load_commit_record(const Pool& pool, Findings* findings = nullptr);

/// The newest epoch of which any valid copy of a record is left, whether or not load_commit_record() would use it; 0: none.
[[nodiscard]] std::uint64_t newest_epoch_named(const Pool& pool);

/// The records of that epoch and later ones are gone, durably: the newest one before it is in force. A crash inside leaves either.
/// Errors: io, no_space.
[[nodiscard]] Result<void> drop_epochs_from(Pool& pool, std::uint64_t epoch);

/// The history of the runs before this one, as a record, or the lack of one, gives it.
struct RunFacts {
    std::uint64_t epoch = 0;  ///< the newest durable one; 0: none
    std::uint64_t captured_unix_ns = 0;
    bool clean = true;  ///< the last run ended normally, or there was none
    bool after_crash = false;  ///< a run has ended otherwise
    std::uint64_t next_epoch = 1;  ///< a number that was never visible
};
[[nodiscard]] RunFacts facts_of_runs(const Pool& pool, const std::optional<CommitRecord>& record) noexcept;

/// Byte-addressable media: starts the write back of the records that recovery relied on. A killed
/// process may have stored one and not made it durable; what is read may be in the caches only.
void write_back_commit_records(Pool& pool) noexcept;

/// Makes both pages of each pair alike, or zero where neither is valid, and clears torn witnesses; durable on return. A torn record
/// may lack only words that the next record of its pair has too: a crash that tears that one
/// would complete it, long after its table entries are gone. Errors: io, no_space.
[[nodiscard]] Result<void> mend_torn_commit_records(Pool& pool);

/// The first writes of a run: the newest record is written again, the opening recorded, a new file gets its name, torn records are
/// fixed. The sync at the head makes durable what was written back before. Errors: io, no_space, pool_exists.
[[nodiscard]] Result<void> begin_run(Pool& pool);

}  // namespace stillpoint

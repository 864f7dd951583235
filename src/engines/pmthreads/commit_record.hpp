#pragma once
// Reads and writes the commit records: VER_d of [PMThreads §4.2].

#include <optional>

#include "core/result.hpp"
#include "engines/pmthreads/pmthreads_layout.hpp"
#include "pool/pool.hpp"

namespace stillpoint::pmthreads {

/// Hands the record, twice, to the pair of pages of its epoch's parity, without making it
/// durable; the pair of the epoch before stays as it is. Fills parity and checksum.
[[nodiscard]] Result<void> store_commit_record(Pool& pool, CommitRecord record);

/// The newest valid record; empty where no epoch was ever committed.
/// Errors: pool_corrupt (records that are neither valid nor what an interrupted write leaves), io.
[[nodiscard]] Result<std::optional<CommitRecord>> load_commit_record(const Pool& pool);

}  // namespace stillpoint::pmthreads

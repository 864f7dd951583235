#pragma once
// Which records of this process's logs a replay is to have, without a list of them: so many, from this one to that one. Links that lead
// from the one to the other over as many records have left none out.

#include "logs/link_walk.hpp"
#include "logs/redo_log.hpp"

namespace stillpoint::logs {

/// Adds the records of one log with timestamps after `after`, up to `limit`. Chunks that have only such records are not walked.
void add_records(RedoLog& log, ChunkSpace& space, Timestamp after, Timestamp limit, LinkedRecords& range) noexcept;

}  // namespace stillpoint::logs

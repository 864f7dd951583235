#pragma once
// Redo logs in a pool that is opened, or that a tool examines: chunks, replay point, group records.

#include <cstdint>
#include <string_view>

#include "core/findings.hpp"
#include "core/result.hpp"
#include "logs/chunk_space.hpp"
#include "logs/group_commit.hpp"
#include "logs/log_area_layout.hpp"
#include "logs/log_scan.hpp"
#include "media/medium.hpp"
#include "pool/pool.hpp"

namespace stillpoint::logs {

/// pool_corrupt, with the advice to restore a copy.
[[nodiscard]] tl::unexpected<Failure> damaged(const Pool& pool, std::string_view what);

/// The chunk_bytes at `file_offset` if a log may have the chunk; else the pages of its headers only. Errors: io.
[[nodiscard]] Result<void> read_chunk(const Medium& medium, std::uint64_t file_offset, std::byte* bytes);

/// Block media: into the mirrors of `space`, the chunks that are in use. Elsewhere there is nothing to do. Errors: io.
[[nodiscard]] Result<void> read_chunks(const Medium& medium, ChunkSpace& space);
/// The segment's log part belongs to `space`: chunks, taken. Before the program's threads know them.
void add_log_part(ChunkSpace& space, const Segment& segment) noexcept;

/// The replay point of the pool's durable epoch; that of epoch 0 is all zero. Errors: pool_corrupt, io.
[[nodiscard]] Result<ReplayPoint> read_replay_point(const Pool& pool, std::uint64_t durable_epoch);

/// For scan_logs(): what counts in a pool with that replay point and marker.
[[nodiscard]] Bounds bounds_for(const Pool& pool, const ReplayPoint& point, Timestamp marker, bool marker_has_record);

/// The newer of both records: the next run goes on from its number, also where it counts for nothing. None: all zero.
[[nodiscard]] GroupRecord newest_group(const Pool& pool);

struct GroupedLogs {
    GroupRecord group;  ///< the newest one in force
    LogIndex index;
};

/// The newest group that is whole. One whose sync had not returned may lack log pages, and then counts for nothing. `bytes` has those of
/// every chunk. Errors: pool_corrupt (which record, and what is kept), no_memory, io.
[[nodiscard]] Result<GroupedLogs> read_grouped(const Pool& pool, const ReplayPoint& point, const LogBytes& bytes, Findings* findings);

}  // namespace stillpoint::logs

#pragma once
// The logs of a pool that is opened, or that a tool examines, and where they end: at the marker of byte-addressable media, or at the one
// of the newest group.

#include <cstdint>

#include "core/findings.hpp"
#include "core/result.hpp"
#include "logs/grouped_logs.hpp"

namespace stillpoint::logs {

/// The page of the marker, as it was found.
struct MarkerPage {
    Timestamp marker;
    bool is_written;  ///< it is before anything is logged, whatever the medium
    std::uint64_t whose_logs;  ///< the third word, as it is
};
/// Errors: pool_corrupt, io.
[[nodiscard]] Result<MarkerPage> read_marker_page(const Pool& pool, std::uint64_t durable_epoch);

struct RecoveredLogs {
    ReplayPoint point;  ///< of the durable epoch
    Timestamp marker;  ///< everything up to it was durable
    bool has_marker;  ///< MarkerPage::is_written
    std::uint64_t whose_logs;  ///< MarkerPage::whose_logs
    GroupRecord group;  ///< the newest one; block media: the newest in force
    LogIndex index;
};

/// By the marker. `bytes` has those of every chunk. Errors: pool_corrupt (which record, and what is kept), no_memory, io.
[[nodiscard]] Result<RecoveredLogs> read_marked(const Pool& pool, const ReplayPoint& point, const MarkerPage& page, const LogBytes& bytes,
                                                Findings* findings);
/// By the marker where it is newer than the page copies, else by the newest group: the pool may have been used on both kinds of media,
/// and each run begins with everything of the earlier ones replayed. Errors: as read_marked().
[[nodiscard]] Result<RecoveredLogs> read_marked_or_grouped(const Pool& pool, const ReplayPoint& point, const MarkerPage& page,
                                                           const LogBytes& bytes, Findings* findings);
/// Logs in use have a marker. Errors: pool_corrupt, which `findings` may take.
[[nodiscard]] Result<void> check_marker(const Pool& pool, const RecoveredLogs& logs, Findings* findings);

}  // namespace stillpoint::logs

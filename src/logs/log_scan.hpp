#pragma once
// Reads the logs that a crash, or an end, has left: which transactions are to be replayed, and whether one that was acknowledged is lost.
//
// The durable marker splits transactions in three [SPHT §3.1]: up to `replayed` the image has them (done); after that and up to `marker`
// they were acknowledged and are to be replayed (live); later ones never returned from their commit, and are void, whole or torn, but for
// whole ones that stand alone, which are live.
//
// After recovery the engine must raise its durable `replayed` and its clock to LogIndex::newest before it acknowledges anything: otherwise
// void records of this run, which still lie in the logs, would become live once the marker passes them.

#include <cstdint>
#include <vector>

#include "core/findings.hpp"
#include "logs/log_bytes.hpp"

namespace stillpoint::logs {

/// The condition under which the record of a transaction counts: it follows from how transactions become durable.
enum class CommitRule : std::uint8_t {
    pool_marker,        ///< one marker in the pool has its timestamp or a later one; or it is whole, and says that it stands alone
    own_marker,         ///< the record's link is encode_marker() of its timestamp, or that of a later one is
    whole_up_to_a_gap,  ///< it is whole, and so are all before it in the one log; links are what was durable when they were written
    whole,              ///< it is whole
};

struct Bounds {
    Timestamp replayed;
    Timestamp marker;  ///< in the pool, or newest_commit()
    std::uint64_t image_words;
    bool marker_has_record;  ///< a transaction has the marker's timestamp: if it is missing and is live, something is lost
    CommitRule rule = CommitRule::pool_marker;
};

struct ScannedLog {
    std::uint64_t run;
    std::uint64_t log;
    std::vector<RecordRef> records;  ///< of live transactions, oldest first; all parts of each
};

struct LogIndex {
    std::vector<ScannedLog> logs;  ///< those with a chunk in use, by run and number
    Timestamp newest = 0;  ///< of all that can be read, void records and headers of torn ones included
    std::uint64_t newest_use = 0;  ///< the largest ChunkHeader::use
    Timestamp whole_up_to = 0;  ///< transactions up to here are done or can be replayed; without damage: the marker
    std::uint64_t chunks_in_use = 0;
    std::uint64_t live_transactions = 0;
    std::uint64_t alone_transactions = 0;  ///< live ones after the marker: they depend on nothing that a crash has lost
    std::uint64_t live_records = 0;
    std::uint64_t live_bytes = 0;  ///< of payload
    std::uint64_t done_records = 0;
    std::uint64_t void_records = 0;  ///< whole ones
};

/// Errors: pool_corrupt (live data is damaged: which log, chunk and transaction, and up to where everything is whole); no_memory.
/// With `findings` damage is told there and the scan goes on; then a damaged log's records end before its damage.
[[nodiscard]] Result<LogIndex> scan_logs(const LogBytes& bytes, const Bounds& bounds, Findings* findings);

}  // namespace stillpoint::logs

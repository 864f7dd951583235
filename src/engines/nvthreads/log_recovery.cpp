#include "engines/nvthreads/log_recovery.hpp"

namespace stillpoint::nvthreads {

Result<logs::RecoveredLogs> read_logs(const Pool& pool, std::uint64_t durable_epoch, const logs::LogBytes& bytes, Findings* findings)
{
    const auto point = logs::read_replay_point(pool, durable_epoch);
    if (!point) {
        return pass_on(point.error());
    }
    const auto page = logs::read_marker_page(pool, durable_epoch);
    if (!page) {
        return pass_on(page.error());
    }
    if (page->whose_logs != 0) {
        return logs::damaged(pool, "the page of the marker of its logs is damaged");
    }
    auto logs = logs::read_marked_or_grouped(pool, *point, *page, bytes, findings);
    if (!logs) {
        return logs;
    }
    if (auto sound = logs::check_marker(pool, *logs, findings); !sound) {
        return pass_on(sound.error());
    }
    return logs;
}

}  // namespace stillpoint::nvthreads

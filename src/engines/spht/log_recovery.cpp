#include "engines/spht/log_recovery.hpp"

#include <utility>

namespace stillpoint::spht {

namespace {

/// Logs of a protocol that moves no marker of the pool.
Result<logs::RecoveredLogs> read_by_rule(const Pool& pool, const ReplayPoint& point, const logs::MarkerPage& page,
                                         const ProtocolRow& protocol, const logs::LogBytes& bytes, Findings* findings)
{
    logs::Bounds bounds = logs::bounds_for(pool, point, 0, false);
    bounds.rule = protocol.rule;
    const auto newest = logs::newest_commit(bytes, bounds);
    if (!newest) {
        return pass_on(newest.error());
    }
    bounds.marker = newest->timestamp;
    if (newest->known_durable > newest->timestamp) {
        auto told = found(findings, logs::damaged(pool, "log records of acknowledged transactions are missing"));
        if (!told) {
            return pass_on(told.error());
        }
    }
    auto index = logs::scan_logs(bytes, bounds, findings);
    if (!index) {
        return pass_on(index.error());
    }
    return logs::RecoveredLogs{point, bounds.marker, page.is_written, page.whose_logs, logs::newest_group(pool), std::move(*index)};
}

}  // namespace

Result<RecoveredLogs> read_logs(const Pool& pool, std::uint64_t durable_epoch, const logs::LogBytes& bytes, Findings* findings)
{
    auto point = logs::read_replay_point(pool, durable_epoch);
    if (!point) {
        return pass_on(point.error());
    }
    const auto page = logs::read_marker_page(pool, durable_epoch);
    if (!page) {
        return pass_on(page.error());
    }
    const ProtocolRow* const protocol = protocol_of_pool(page->whose_logs);
    if (protocol == nullptr) {
        return logs::damaged(pool, "the name of the protocol of its logs is damaged");
    }
    const auto read = [&]() -> Result<logs::RecoveredLogs> {
        if (protocol->rule != logs::CommitRule::pool_marker) {
            return read_by_rule(pool, *point, *page, *protocol, bytes, findings);
        }
        return protocol->is_spht() ? logs::read_marked_or_grouped(pool, *point, *page, bytes, findings)
                                   : logs::read_marked(pool, *point, *page, bytes, findings);
    };
    auto logs = read();
    if (!logs) {
        return pass_on(logs.error());
    }
    if (auto sound = logs::check_marker(pool, *logs, findings); !sound) {
        return pass_on(sound.error());
    }
    return RecoveredLogs{std::move(*logs), protocol};
}

}  // namespace stillpoint::spht

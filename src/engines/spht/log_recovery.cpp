#include "engines/spht/log_recovery.hpp"

#include <array>

#include "logs/durable_marker.hpp"

namespace stillpoint::spht {

namespace {

/// Block media.
Result<RecoveredLogs> read_groups(const Pool& pool, const ReplayPoint& point, const logs::LogBytes& bytes, Findings* findings)
{
    auto grouped = logs::read_grouped(pool, point, bytes, findings);
    if (!grouped) {
        return pass_on(grouped.error());
    }
    return RecoveredLogs{point, grouped->group.marker, true, &protocol_called("spht"), grouped->group, std::move(grouped->index)};
}

Result<RecoveredLogs> read_marked(const Pool& pool, const ReplayPoint& point, logs::Timestamp marker, const ProtocolRow& protocol,
                                  const logs::LogBytes& bytes, Findings* findings)
{
    auto index = logs::scan_logs(bytes, logs::bounds_for(pool, point, marker, true), findings);
    if (!index) {
        return pass_on(index.error());
    }
    return RecoveredLogs{point, marker, true, &protocol, logs::newest_group(pool), std::move(*index)};
}

/// Logs of a protocol that moves no marker of the pool.
Result<RecoveredLogs> read_by_rule(const Pool& pool, const ReplayPoint& point, const ProtocolRow& protocol, const logs::LogBytes& bytes,
                                   Findings* findings)
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
    return RecoveredLogs{point, bounds.marker, true, &protocol, logs::newest_group(pool), std::move(*index)};
}

}  // namespace

Result<RecoveredLogs> read_logs(const Pool& pool, std::uint64_t durable_epoch, const logs::LogBytes& bytes, Findings* findings)
{
    auto point = logs::read_replay_point(pool, durable_epoch);
    if (!point) {
        return pass_on(point.error());
    }
    std::array<std::uint64_t, 3> words{};
    if (auto read = pool.medium().read((pool.facts().engine_area_first_page + marker_page) * page_bytes,
                                       std::as_writable_bytes(std::span(words)));
        !read) {
        return pass_on(read.error());
    }
    if (durable_epoch == 0) {
        words = {};  // A crash may have torn them: nothing was logged before the first epoch, which has them.
    }
    const auto [word, magic, protocol_word] = words;
    const ProtocolRow* const protocol = protocol_of_pool(protocol_word);
    if (protocol == nullptr) {
        return logs::damaged(pool, "the name of the protocol of its logs is damaged");
    }
    const auto marker = logs::decode_marker(word);
    if (!marker || (magic != logs::marker_magic && (word != 0 || magic != 0)) || (word == 0 && magic != 0)) {
        return logs::damaged(pool, "the marker of the newest durable transaction is damaged");
    }
    // The pool may have been used on both kinds of media. Each run begins with everything of the earlier ones replayed.
    const auto read = [&]() -> Result<RecoveredLogs> {
        if (protocol->rule != logs::CommitRule::pool_marker) {
            return read_by_rule(pool, *point, *protocol, bytes, findings);
        }
        return *marker <= point->replayed && protocol->is_spht() ? read_groups(pool, *point, bytes, findings)
                                                                 : read_marked(pool, *point, *marker, *protocol, bytes, findings);
    };
    auto logs = read();
    if (!logs) {
        return logs;
    }
    logs->has_marker = word != 0;
    if (!logs->has_marker && logs->index.chunks_in_use != 0) {
        if (auto told = found(findings, logs::damaged(pool, "the marker of the newest durable transaction is gone")); !told) {
            return pass_on(told.error());
        }
    }
    return logs;
}

}  // namespace stillpoint::spht

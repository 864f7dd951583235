#include "engines/spht/log_recovery.hpp"

#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "arch/checksum.hpp"
#include "core/canary.hpp"
#include "logs/durable_marker.hpp"
#include "logs/record_checks.hpp"

namespace stillpoint::spht {

namespace {

std::uint64_t area_offset(const Pool& pool, std::uint64_t page) { return (pool.facts().engine_area_first_page + page) * page_bytes; }

tl::unexpected<Failure> damaged(const Pool& pool, std::string_view what)
{
    return fail(SP_E_POOL_CORRUPT, 0, "{}: {}; restore the pool from a copy", pool.medium().path(), what);
}

/// nullopt: no such record is in force there.
std::optional<logs::GroupRecord> read_group(const Pool& pool, std::uint64_t parity)
{
    logs::GroupRecord record{};
    if (!pool.medium().read(area_offset(pool, group_page + parity), std::as_writable_bytes(std::span(&record, 1)))) {
        return std::nullopt;
    }
    const bool valid = record.magic == logs::group_magic && record.number % 2 == parity && record.marker <= logs::timestamp_max &&
                       record.checksum == logs::group_checksum(record, logs::group_magic);
    return valid ? std::optional(record) : std::nullopt;
}

logs::Bounds bounds_for(const Pool& pool, const ReplayPoint& point, logs::Timestamp marker, bool marker_has_record)
{
    return {point.replayed, std::max(marker, point.replayed), pool.facts().image_bytes_max / 8, marker_has_record};
}

/// The newer of both records: the next run goes on from its number, also where it counts for nothing. None: all zero.
logs::GroupRecord newest_group(const Pool& pool)
{
    const logs::GroupRecord even = read_group(pool, 0).value_or(logs::GroupRecord{});
    const logs::GroupRecord odd = read_group(pool, 1).value_or(logs::GroupRecord{});
    return even.number > odd.number ? even : odd;
}

/// Block media: the newest group that is whole. One whose sync had not returned may lack log pages, and then counts for nothing.
Result<RecoveredLogs> read_grouped(const Pool& pool, const ReplayPoint& point, const logs::LogBytes& bytes, Findings* findings)
{
    std::array<logs::GroupRecord, 2> groups{};
    for (std::uint64_t parity = 0; parity < 2; ++parity) {
        groups[parity] = read_group(pool, parity).value_or(logs::GroupRecord{});
    }
    if (groups[0].number < groups[1].number) {
        std::swap(groups[0], groups[1]);
    }
    std::optional<Failure> first_damage;
    for (const logs::GroupRecord& group : groups) {
        const std::uint64_t expected = group.marker > point.replayed ? group.transactions - point.transactions : 0;
        auto index = logs::scan_logs(bytes, bounds_for(pool, point, group.marker, false), nullptr);
        if (index && (index->live_transactions - index->alone_transactions == expected || is_removed(Canary::group_count))) {
            // One that does not count stays until a later one is written: no transaction of the next run may seem to be its.
            index->newest = std::max(index->newest, groups[0].marker);
            return RecoveredLogs{point, group.marker, true, &protocol_called("spht"), group, std::move(*index)};
        }
        if (!index && !first_damage && index.error().code != SP_E_POOL_CORRUPT) {
            return pass_on(index.error());
        }
        if (!index && !first_damage) {
            first_damage = index.error();
        }
    }
    const auto failure = first_damage
                             ? *first_damage
                             : fail(SP_E_POOL_CORRUPT, 0,
                                    "{}: log records of acknowledged transactions are missing after timestamp {}; restore the pool "
                                    "from a copy",
                                    pool.medium().path(), point.replayed)
                                   .value();
    if (findings == nullptr) {
        return pass_on(failure);
    }
    findings->damage(failure);
    auto index = logs::scan_logs(bytes, bounds_for(pool, point, groups[0].marker, false), findings);
    if (!index) {
        return pass_on(index.error());
    }
    return RecoveredLogs{point, groups[0].marker, true, &protocol_called("spht"), groups[0], std::move(*index)};
}

Result<RecoveredLogs> read_marked(const Pool& pool, const ReplayPoint& point, logs::Timestamp marker, const ProtocolRow& protocol,
                                  const logs::LogBytes& bytes, Findings* findings)
{
    auto index = logs::scan_logs(bytes, bounds_for(pool, point, marker, true), findings);
    if (!index) {
        return pass_on(index.error());
    }
    return RecoveredLogs{point, marker, true, &protocol, newest_group(pool), std::move(*index)};
}

/// Logs of a protocol that moves no marker of the pool.
Result<RecoveredLogs> read_by_rule(const Pool& pool, const ReplayPoint& point, const ProtocolRow& protocol, const logs::LogBytes& bytes,
                                   Findings* findings)
{
    logs::Bounds bounds = bounds_for(pool, point, 0, false);
    bounds.rule = protocol.rule;
    const auto newest = logs::newest_commit(bytes, bounds);
    if (!newest) {
        return pass_on(newest.error());
    }
    bounds.marker = newest->timestamp;
    if (newest->known_durable > newest->timestamp) {
        auto told = found(findings, damaged(pool, "log records of acknowledged transactions are missing"));
        if (!told) {
            return pass_on(told.error());
        }
    }
    auto index = logs::scan_logs(bytes, bounds, findings);
    if (!index) {
        return pass_on(index.error());
    }
    return RecoveredLogs{point, bounds.marker, true, &protocol, newest_group(pool), std::move(*index)};
}

}  // namespace

Result<void> read_chunk(const Medium& medium, std::uint64_t file_offset, std::byte* bytes)
{
    constexpr std::uint64_t last_page = logs::chunk_bytes - page_bytes;
    for (const std::uint64_t page : {std::uint64_t{0}, last_page}) {
        if (auto done = medium.read(file_offset + page, {bytes + page, page_bytes}); !done) {
            return done;
        }
    }
    if (!logs::chunk_header_in(bytes) && !logs::chunk_header_in(bytes + logs::header_copy_offset)) {
        return {};
    }
    return medium.read(file_offset, {bytes, logs::chunk_bytes});
}

Result<ReplayPoint> read_replay_point(const Pool& pool, std::uint64_t durable_epoch)
{
    if (durable_epoch == 0) {
        return ReplayPoint{};
    }
    for (std::uint64_t copy = 0; copy < 2; ++copy) {
        ReplayPoint point{};
        const std::uint64_t offset = area_offset(pool, replay_points_page + copy) + durable_epoch % 2 * replay_point_stride;
        if (!pool.medium().read(offset, std::as_writable_bytes(std::span(&point, 1)))) {
            continue;
        }
        const std::uint64_t checksum = checksum64(&point.epoch, sizeof point - offsetof(ReplayPoint, epoch), replay_point_magic);
        const bool is_whole = point.checksum == checksum || is_removed(Canary::replay_point_checksum);
        if (point.magic == replay_point_magic && is_whole && point.epoch == durable_epoch && point.replayed <= logs::timestamp_max) {
            return point;
        }
    }
    return damaged(pool, "both copies of the replay point are damaged: which log records the page copies have is not known");
}

Result<RecoveredLogs> read_logs(const Pool& pool, std::uint64_t durable_epoch, const logs::LogBytes& bytes, Findings* findings)
{
    auto point = read_replay_point(pool, durable_epoch);
    if (!point) {
        return pass_on(point.error());
    }
    std::array<std::uint64_t, 3> words{};
    if (auto read = pool.medium().read(area_offset(pool, marker_page), std::as_writable_bytes(std::span(words))); !read) {
        return pass_on(read.error());
    }
    if (durable_epoch == 0) {
        words = {};  // A crash may have torn them: nothing was logged before the first epoch, which has them.
    }
    const auto [word, magic, protocol_word] = words;
    const ProtocolRow* const protocol = protocol_of_pool(protocol_word);
    if (protocol == nullptr) {
        return damaged(pool, "the name of the protocol of its logs is damaged");
    }
    const auto marker = logs::decode_marker(word);
    if (!marker || (magic != logs::marker_magic && (word != 0 || magic != 0)) || (word == 0 && magic != 0)) {
        return damaged(pool, "the marker of the newest durable transaction is damaged");
    }
    // The pool may have been used on both kinds of media. Each run begins with everything of the earlier ones replayed.
    const auto read = [&]() -> Result<RecoveredLogs> {
        if (protocol->rule != logs::CommitRule::pool_marker) {
            return read_by_rule(pool, *point, *protocol, bytes, findings);
        }
        return *marker <= point->replayed && protocol->is_spht() ? read_grouped(pool, *point, bytes, findings)
                                                                 : read_marked(pool, *point, *marker, *protocol, bytes, findings);
    };
    auto logs = read();
    if (!logs) {
        return logs;
    }
    logs->has_marker = word != 0;
    if (!logs->has_marker && logs->index.chunks_in_use != 0) {
        if (auto told = found(findings, damaged(pool, "the marker of the newest durable transaction is gone")); !told) {
            return pass_on(told.error());
        }
    }
    return logs;
}

}  // namespace stillpoint::spht

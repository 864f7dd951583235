#include "logs/grouped_logs.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "arch/checksum.hpp"
#include "core/canary.hpp"
#include "logs/record_checks.hpp"

namespace stillpoint::logs {

namespace {

std::uint64_t area_offset(const Pool& pool, std::uint64_t page) { return (pool.facts().engine_area_first_page + page) * page_bytes; }

/// nullopt: no such record is in force there.
std::optional<GroupRecord> read_group(const Pool& pool, std::uint64_t parity)
{
    GroupRecord record{};
    if (!pool.medium().read(area_offset(pool, group_page + parity), std::as_writable_bytes(std::span(&record, 1)))) {
        return std::nullopt;
    }
    const bool valid = record.magic == group_magic && record.number % 2 == parity && record.marker <= timestamp_max &&
                       record.checksum == group_checksum(record, group_magic);
    return valid ? std::optional(record) : std::nullopt;
}

}  // namespace

tl::unexpected<Failure> damaged(const Pool& pool, std::string_view what)
{
    return fail(SP_E_POOL_CORRUPT, 0, "{}: {}; restore the pool from a copy", pool.medium().path(), what);
}

Bounds bounds_for(const Pool& pool, const ReplayPoint& point, Timestamp marker, bool marker_has_record)
{
    return {point.replayed, std::max(marker, point.replayed), pool.facts().image_bytes_max / 8, marker_has_record};
}

GroupRecord newest_group(const Pool& pool)
{
    const GroupRecord even = read_group(pool, 0).value_or(GroupRecord{});
    const GroupRecord odd = read_group(pool, 1).value_or(GroupRecord{});
    return even.number > odd.number ? even : odd;
}

Result<GroupedLogs> read_grouped(const Pool& pool, const ReplayPoint& point, const LogBytes& bytes, Findings* findings)
{
    std::array<GroupRecord, 2> groups{};
    for (std::uint64_t parity = 0; parity < 2; ++parity) {
        groups[parity] = read_group(pool, parity).value_or(GroupRecord{});
    }
    if (groups[0].number < groups[1].number) {
        std::swap(groups[0], groups[1]);
    }
    std::optional<Failure> first_damage;
    for (const GroupRecord& group : groups) {
        const std::uint64_t expected = group.marker > point.replayed ? group.transactions - point.transactions : 0;
        auto index = scan_logs(bytes, bounds_for(pool, point, group.marker, false), nullptr);
        if (index && (index->live_transactions - index->alone_transactions == expected || is_removed(Canary::group_count))) {
            // One that does not count stays until a later one is written: no transaction of the next run may seem to be its.
            index->newest = std::max(index->newest, groups[0].marker);
            return GroupedLogs{group, std::move(*index)};
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
    auto index = scan_logs(bytes, bounds_for(pool, point, groups[0].marker, false), findings);
    if (!index) {
        return pass_on(index.error());
    }
    return GroupedLogs{groups[0], std::move(*index)};
}

Result<void> read_chunk(const Medium& medium, std::uint64_t file_offset, std::byte* bytes)
{
    constexpr std::uint64_t last_page = chunk_bytes - page_bytes;
    for (const std::uint64_t page : {std::uint64_t{0}, last_page}) {
        if (auto done = medium.read(file_offset + page, {bytes + page, page_bytes}); !done) {
            return done;
        }
    }
    if (!chunk_header_in(bytes) && !chunk_header_in(bytes + header_copy_offset)) {
        return {};
    }
    return medium.read(file_offset, {bytes, chunk_bytes});
}

Result<void> read_chunks(const Medium& medium, ChunkSpace& space)
{
    for (ChunkIndex chunk = 0; space.is_mirrored() && chunk < space.chunk_count(); ++chunk) {
        if (auto done = read_chunk(medium, space.file_offset(chunk), space.mirror(chunk)); !done) {
            return done;
        }
    }
    return {};
}

void add_log_part(ChunkSpace& space, const Segment& segment) noexcept
{
    space.add(LogPart::first_page(segment), LogPart::pages_of(segment), segment.first_image_page != 0);
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
        if (point.magic == replay_point_magic && is_whole && point.epoch == durable_epoch && point.replayed <= timestamp_max) {
            return point;
        }
    }
    return damaged(pool, "both copies of the replay point are damaged: which log records the page copies have is not known");
}

}  // namespace stillpoint::logs

#include "logs/replay_order.hpp"

#include <new>

#include "arch/prefetch.hpp"

namespace stillpoint::logs {

namespace {

constexpr std::uint64_t link_mark = 1;

bool is_part_of_same(const RecordHeader* earlier, const RecordHeader* later) noexcept
{
    return earlier->timestamp == later->timestamp && (earlier->part & more_parts) != 0 &&
           (later->part & ~more_parts) == (earlier->part + 1) % more_parts;
}

/// Both are records, and no other order of the two is possible.
bool are_neighbours(const RecordHeader* earlier, const RecordHeader* later) noexcept
{
    return (earlier->timestamp & later->timestamp & 1) != 0 && (earlier->timestamp < later->timestamp || is_part_of_same(earlier, later));
}

/// Logs are written one record after the other, so what follows this one in memory is soon needed.
void read_ahead(const RecordHeader* record) noexcept
{
    constexpr std::uint64_t lines_ahead = 4;
    arch::prefetch(reinterpret_cast<const std::byte*>(record) + lines_ahead * cache_line_bytes, cache_line_bytes);
}

bool is_at(const RecordRef& end, const RecordRef& record) noexcept
{
    return end.timestamp == record.timestamp && (end.position == 0 || end.position == record.position);
}

}  // namespace

std::uint64_t order_by_timestamp(std::span<LogHead> logs, std::span<RecordRef> out) noexcept
{
    std::uint64_t count = 0;
    for (RecordRef& record : out) {
        LogHead* oldest = nullptr;
        Timestamp timestamp = LogHead::ended;
        for (LogHead& log : logs) {
            if (log.timestamp() < timestamp) {
                timestamp = log.timestamp();
                oldest = &log;
            }
        }
        if (oldest == nullptr) {
            break;
        }
        record = oldest->take();
        ++count;
    }
    return count;
}

bool follow_links(const LogBytes& bytes, LinkDirection direction, const RecordRef& oldest, const RecordRef& newest,
                  std::span<RecordRef> out) noexcept
{
    const bool is_forward = direction == LinkDirection::forward;
    const RecordRef& start = is_forward ? oldest : newest;
    if (out.empty() || !is_record_position(start.position, bytes.count)) {
        return false;
    }
    Position position = start.position;
    const RecordHeader* record = bytes.record_at(position);
    if ((record->timestamp & 1) == 0 || record->timestamp >> 1 != start.timestamp) {
        return false;
    }
    for (std::uint64_t i = 0;;) {
        RecordRef& place = out[is_forward ? i : out.size() - 1 - i];
        place = {record->timestamp >> 1, position};
        read_ahead(record);
        if (++i == out.size()) {
            return is_at(is_forward ? newest : oldest, place);
        }
        const std::uint64_t link = load_link(record);
        position = link & ~link_mark;
        if ((link & link_mark) == 0 || !is_record_position(position, bytes.count)) {
            return false;
        }
        const RecordHeader* const next = bytes.record_at(position);
        if (!(is_forward ? are_neighbours(record, next) : are_neighbours(next, record))) {
            return false;
        }
        record = next;
    }
}

Result<bool> has_all_of(std::span<const RecordRef> ordered, const LogIndex& index, const LogBytes& bytes)
{
    try {
        std::vector<std::uint32_t> log_of_chunk(bytes.count, UINT32_MAX);
        std::vector<LogHead> heads;
        for (const ScannedLog& log : index.logs) {
            for (const RecordRef& record : log.records) {
                log_of_chunk[chunk_of(record.position)] = static_cast<std::uint32_t>(heads.size());
            }
            heads.emplace_back(log.records);
        }
        for (const RecordRef& record : ordered) {
            const std::uint64_t chunk = chunk_of(record.position);
            const std::uint32_t log = chunk < bytes.count ? log_of_chunk[chunk] : UINT32_MAX;
            if (log == UINT32_MAX || heads[log].left() == 0 || heads[log].take() != record) {
                return false;
            }
        }
        for (const LogHead& head : heads) {
            if (head.left() != 0) {
                return false;
            }
        }
        return true;
    } catch (const std::bad_alloc&) {
        return fail(SP_E_NO_MEMORY, 0, "no memory to compare {} records with their logs", ordered.size());
    }
}

}  // namespace stillpoint::logs

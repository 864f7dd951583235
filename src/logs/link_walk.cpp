#include "logs/link_walk.hpp"

#include <algorithm>

#include "arch/prefetch.hpp"

namespace stillpoint::logs {

namespace {

bool is_part_of_same(const RecordHeader* earlier, const RecordHeader* later) noexcept
{
    return earlier->timestamp == later->timestamp && (earlier->part & more_parts) != 0 &&
           part_number(later->part) == part_number(earlier->part) + 1;
}

/// Both are records, and no other order of the two is possible.
bool are_neighbours(const RecordHeader* earlier, const RecordHeader* later) noexcept
{
    return (earlier->timestamp & later->timestamp & 1) != 0 && (earlier->timestamp < later->timestamp || is_part_of_same(earlier, later));
}

/// A log's records lie one after the other, so that the next ones of this record's log are soon needed: about as many bytes as it has.
[[gnu::always_inline]] inline void read_ahead(const RecordHeader* record, bool is_forward) noexcept
{
    constexpr std::uint64_t bytes_ahead = 8 * cache_line_bytes;
    const std::uint64_t bytes = std::min(record_bytes_for(record->words), bytes_ahead);
    const auto* const at = reinterpret_cast<const std::byte*>(record);
    arch::prefetch(is_forward ? at + bytes_ahead : at - bytes_ahead, bytes);
}

}  // namespace

LinkWalk::LinkWalk(const LogBytes& bytes, LinkDirection direction, const RecordRef& start) noexcept
    : bytes_(bytes), position_(start.position), is_forward_(direction == LinkDirection::forward)
{
    if (is_record_position(start.position, bytes.count)) {
        const RecordHeader* const record = bytes.record_at(start.position);
        record_ = record->timestamp == (start.timestamp << 1 | 1) ? record : nullptr;
    }
}

void LinkWalk::advance() noexcept
{
    const std::uint64_t link = load_link(record_);
    const RecordHeader* const before = record_;
    record_ = nullptr;
    position_ = link & ~link_mark;
    if ((link & link_mark) == 0 || !is_record_position(position_, bytes_.count)) {
        return;
    }
    const RecordHeader* const next = bytes_.record_at(position_);
    read_ahead(next, is_forward_);
    if (is_forward_ ? are_neighbours(before, next) : are_neighbours(next, before)) {
        record_ = next;
    }
}

}  // namespace stillpoint::logs

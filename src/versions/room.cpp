#include "versions/room.hpp"

#include <algorithm>

#include "heap/heap_layout.hpp"
#include "pool/image.hpp"
#include "versions/page_layout.hpp"

namespace stillpoint::versions {

namespace {

/// A program with some hundred names and a small heap fills no more of the tables.
constexpr std::uint64_t table_pages_with_room = 40;

heap::HeapLayout heap_of(std::uint64_t image_bytes_max) noexcept
{
    constexpr auto format = layout::TableFormat::plain;
    return heap::HeapLayout::of(ImageGeometry::for_image(image_bytes_max, format).heap_offset, image_bytes_max, format);
}

}  // namespace

FilePageRange data_pages_without_room(const Segment& first, std::uint64_t image_bytes_max) noexcept
{
    const std::uint64_t tables = std::min(heap_of(image_bytes_max).spans_offset / page_bytes, first.image_pages);
    if (tables <= 2 * table_pages_with_room) {
        return {};
    }
    // The pages at which the copies of these pages lie on byte-addressable media; those of the program's memory have room.
    const std::uint64_t begin = first_data_page(first);
    return {begin + data_pages_per_image_page * table_pages_with_room, begin + data_pages_per_image_page * tables};
}

TwoFilePageRanges pages_without_room_with_deltas(const Segment& segment, std::uint64_t image_bytes_max, Room room) noexcept
{
    const bool is_first = segment.first_image_page == 0;
    FilePageRange tables = is_first ? data_pages_without_room(segment, image_bytes_max) : FilePageRange{};
    if (room == Room::on_disk) {
        return {tables, FilePageRange{}};
    }
    const std::uint64_t first_copies = first_data_page(segment);
    if (!tables.is_empty()) {  // The first copies of the same pages.
        const std::uint64_t begin = (tables.begin - first_copies) / data_pages_per_image_page;
        const std::uint64_t end = (tables.end - first_copies) / data_pages_per_image_page;
        tables = {first_copies + begin, first_copies + end};
    }
    return {tables, FilePageRange{first_copies + segment.image_pages, segment.first_file_page + segment.file_pages}};
}

void note_first_copies_without_room(const Pool& pool, const EngineFormat& format, const VersionTable& table,
                                    LocationAllocator& locations) noexcept
{
    locations.note_without_room(
        format.without_room(pool.segments().front(), pool.facts().image_bytes_first_max, pool.medium().room()).front());
    for (const Segment& segment : pool.segments()) {
        const std::uint64_t first_copies = first_data_page(segment);
        for (std::uint64_t i = 0; i < segment.image_pages; ++i) {
            const VersionSlot& copy = table.consistent(segment.first_image_page + i);
            if (copy.epoch != 0 && copy.location != first_copies + i) {
                locations.note_without_room({first_copies + i, first_copies + i + 1});
            }
        }
    }
}

Result<void> take_room_for_tables(const Pool& pool, const EngineFormat& format, std::uint64_t image_bytes)
{
    const std::uint64_t image_bytes_max = pool.facts().image_bytes_first_max;
    const Segment& first = pool.segments().front();
    const FilePageRange of_format = format.without_room(first, image_bytes_max, pool.medium().room()).front();
    const FilePageRange without = of_format.is_empty() ? data_pages_without_room(first, image_bytes_max) : of_format;
    const heap::HeapLayout heap = heap_of(image_bytes_max);
    const std::uint64_t filled_bytes = heap.spans_in(image_bytes) * (heap::coarse_marks_per_span + sizeof(heap::SpanEntry));
    const std::uint64_t filled_pages = data_pages_per_image_page * (filled_bytes / page_bytes);
    const FilePageRange pages{without.begin, std::min(without.begin + filled_pages, without.end)};
    return pages.is_empty() ? Result<void>{} : pool.medium().allocate(pages.bytes());
}

}  // namespace stillpoint::versions

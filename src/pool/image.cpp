#include "pool/image.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "arch/checksum.hpp"
#include "core/store_marks.hpp"
#include "pool/corrupt.hpp"
#include "pool/directory_layout.hpp"
#include "pool/image_header.hpp"
#include "pool/image_layout.hpp"

namespace stillpoint {
namespace {

using layout::ImageHeader;
using layout::TableFormat;

// One directory entry for each 64 KiB that the image may ever have, within these bounds: the
// tables take 1/512 and 1/1024 of the maximum, and at most 3 MiB from 1 GiB on.
constexpr std::uint64_t bytes_per_handle = 64 * kib;
constexpr std::uint64_t directory_capacity_min = 128;
constexpr std::uint64_t directory_capacity_max = 16384;
constexpr std::uint64_t sync_objects_per_handle = 4;
/// The heap hands out spans of this size: they then lie at multiples of it.
constexpr std::uint64_t heap_alignment = 64 * kib;

std::uint64_t header_checksum(const ImageHeader& header) noexcept
{
    const auto* bytes = reinterpret_cast<const std::byte*>(&header);
    constexpr std::size_t before = offsetof(ImageHeader, checksum);
    constexpr std::size_t after = before + sizeof(ImageHeader::checksum);
    const std::uint64_t head = checksum64(bytes, before, layout::image_checksum_seed);
    return checksum64(bytes + after, offsetof(ImageHeader, data_layout) - after, head);
}

Result<void> check_durable_globals(const ImageHeader& header)
{
    for (std::size_t i = 0; i < layout::durable_globals_max; ++i) {
        const layout::DurableGlobals& globals = header.durable_globals[i];
        if (globals.name[0] == '\0') {
            continue;
        }
        if (strnlen(globals.name, sizeof globals.name) == sizeof globals.name) {
            return corrupt("image header: durable globals {}: the name is not terminated", i);
        }
        if (globals.image_offset < header.heap_offset || globals.image_offset > header.image_bytes_max ||
            globals.size > header.image_bytes_max - globals.image_offset) {
            return corrupt("image header: durable globals {}: {} bytes at offset {} are not in the "
                           "heap, offsets {} to {}",
                           i, globals.size, globals.image_offset, header.heap_offset, header.image_bytes_max);
        }
    }
    return {};
}

Result<void> check_data_layout(const layout::DataLayout& kept)
{
    const std::size_t length = strnlen(kept.name, sizeof kept.name);
    if (length == sizeof kept.name || (length != 0 && !is_data_layout_name({kept.name, length}))) {
        return corrupt("image header: the name of the layout of the data is not one");
    }
    return {};
}

}  // namespace

bool is_data_layout_name(std::string_view name) noexcept
{
    constexpr std::string_view others = "._-";
    return !name.empty() && name.size() < sizeof(layout::DataLayout::name) &&
           std::ranges::all_of(
               name,
               [=](char c) {
                   return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || others.find(c) != others.npos;
               });
}

ImageGeometry ImageGeometry::for_image(std::uint64_t image_bytes_max, TableFormat format) noexcept
{
    const std::uint64_t handles = std::clamp(std::bit_floor(image_bytes_max / bytes_per_handle), directory_capacity_min,
                                             directory_capacity_max);
    ImageGeometry geometry{};
    geometry.directory_offset = sizeof(ImageHeader);
    geometry.directory_capacity = handles;
    geometry.sync_objects_offset = geometry.directory_offset + handles * sizeof(layout::DirectoryRecord);
    geometry.sync_objects_capacity = handles * sync_objects_per_handle;
    const std::uint64_t end = geometry.sync_objects_offset + geometry.sync_objects_capacity * sizeof(layout::SyncObjectRecord);
    geometry.table_pages = (end + page_bytes - 1) / page_bytes;
    geometry.copies_offset = geometry.table_pages * page_bytes;
    geometry.copy_records_offset = geometry.copies_offset + geometry.table_pages * page_bytes;
    const std::uint64_t records_end = round_up(geometry.copy_records_offset + geometry.table_pages * cache_line_bytes, page_bytes);
    geometry.heap_offset = round_up(format == TableFormat::plain ? end : records_end, heap_alignment);
    return geometry;
}

void make_image_header(std::byte* page, std::uintptr_t base_address, std::uint64_t image_bytes_max, TableFormat format) noexcept
{
    const ImageGeometry geometry = ImageGeometry::for_image(image_bytes_max, format);
    auto& header = *reinterpret_cast<ImageHeader*>(page);
    std::memcpy(header.magic, layout::image_magic, sizeof header.magic);
    header.version = layout::image_version;
    header.header_bytes = sizeof header;
    header.base_address = base_address;
    header.image_bytes_max = image_bytes_max;
    header.directory_offset = geometry.directory_offset;
    header.directory_capacity = geometry.directory_capacity;
    header.sync_objects_offset = geometry.sync_objects_offset;
    header.sync_objects_capacity = geometry.sync_objects_capacity;
    header.heap_offset = geometry.heap_offset;
    header.directory_entry_bytes = sizeof(layout::DirectoryRecord);
    header.sync_object_bytes = sizeof(layout::SyncObjectRecord);
    header.table_format = static_cast<std::uint32_t>(format);
    header.checksum = header_checksum(header);
}

void format_image(std::byte* base, std::uint64_t image_bytes_max, TableFormat format) noexcept
{
    announce_store(base, sizeof(ImageHeader));
    make_image_header(base, reinterpret_cast<std::uintptr_t>(base), image_bytes_max, format);
    note_store(base, sizeof(ImageHeader));
}

ImageMaximum maximum_of(const std::byte* base) noexcept
{
    const auto& header = *reinterpret_cast<const ImageHeader*>(base);
    return {header.image_bytes_max, header.span_table_offset};
}

void store_maximum(std::byte* base, const ImageMaximum& maximum) noexcept
{
    auto& header = *reinterpret_cast<ImageHeader*>(base);
    announce_store(&header, offsetof(ImageHeader, data_layout));
    header.image_bytes_max = maximum.image_bytes_max;
    header.span_table_offset = maximum.span_table_offset;
    header.checksum = header_checksum(header);
    note_store(&header, offsetof(ImageHeader, data_layout));
}

TableFormat table_format_of(const std::byte* base) noexcept
{
    return static_cast<TableFormat>(reinterpret_cast<const ImageHeader*>(base)->table_format);
}

Result<void> check_image(const std::byte* base, TableFormat format, const ImageLimits& limits)
{
    const auto& header = *reinterpret_cast<const ImageHeader*>(base);
    if (std::memcmp(header.magic, layout::image_magic, sizeof header.magic) != 0) {
        return corrupt("image header: no magic number: the durable memory was never formatted, or "
                       "its first page is damaged");
    }
    if (header.checksum != header_checksum(header)) {
        return corrupt("image header: the checksum does not hold");
    }
    if (header.version != layout::image_version) {
        return fail(SP_E_POOL_VERSION, 0, "image header: version {}, this library reads version {}; use a newer Stillpoint", header.version,
                    layout::image_version);
    }
    if (header.table_format > static_cast<std::uint32_t>(TableFormat::logged)) {
        return fail(SP_E_POOL_VERSION, 0, "image header: table format {} is not known to this library; use a newer Stillpoint",
                    header.table_format);
    }
    if (header.table_format != static_cast<std::uint32_t>(format)) {
        return corrupt("image header: table format {} is not that of the pool's engine", header.table_format);
    }
    const ImageGeometry geometry = ImageGeometry::for_image(limits.image_bytes_first_max, format);
    const bool has_own_tables = header.image_bytes_max != limits.image_bytes_first_max;
    if (header.image_bytes_max < limits.image_bytes_first_max || header.image_bytes_max > limits.image_bytes_max ||
        has_own_tables != (header.span_table_offset != 0)) {
        return corrupt(
            "image header: a maximum of {} bytes, with the heap's tables at {}, is none that a pool has that was made with {} and "
            "may have {}",
            header.image_bytes_max, header.span_table_offset, limits.image_bytes_first_max, limits.image_bytes_max);
    }
    if (header.header_bytes != sizeof header || header.directory_offset != geometry.directory_offset ||
        header.directory_capacity != geometry.directory_capacity || header.sync_objects_offset != geometry.sync_objects_offset ||
        header.sync_objects_capacity != geometry.sync_objects_capacity || header.heap_offset != geometry.heap_offset ||
        header.directory_entry_bytes != sizeof(layout::DirectoryRecord) || header.sync_object_bytes != sizeof(layout::SyncObjectRecord)) {
        return corrupt("image header: its tables are not those of an image of at most {} bytes", limits.image_bytes_first_max);
    }
    if (limits.base_address != 0 && header.base_address != limits.base_address) {
        return corrupt("image header: made for base address {:#x}, the pool has {:#x}", header.base_address, limits.base_address);
    }
    if (auto checked = check_data_layout(header.data_layout); !checked) {
        return checked;
    }
    return check_durable_globals(header);
}

}  // namespace stillpoint

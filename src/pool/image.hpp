#pragma once
// The image: what durable memory holds, seen through its mapping at the pool's base address.
//
//   image header (one page) | handle directory | synchronisation objects | heap
//   with TableFormat::logged: … synchronisation objects | copies of the pages up to here | what they hold | heap
//
// All of it is ordinary durable memory: whatever makes the user's data failure-atomic makes
// these tables failure-atomic too. image_layout.hpp has the structures.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/result.hpp"
#include "core/units.hpp"
#include "pool/image_layout.hpp"

namespace stillpoint {

/// Where the parts of an image lie, in bytes from its base; a pure function of the maximum size that it was made with.
struct ImageGeometry {
    std::uint64_t directory_offset;
    std::uint64_t directory_capacity;      ///< entries
    std::uint64_t sync_objects_offset;
    std::uint64_t sync_objects_capacity;   ///< entries
    std::uint64_t table_pages;             ///< from the image's base: header, directory, synchronisation objects
    std::uint64_t copies_offset;           ///< TableFormat::logged: a second copy of each of them
    std::uint64_t copy_records_offset;     ///< and a cache line for each, which says what its copies hold
    std::uint64_t heap_offset;             ///< page aligned; the heap reaches to the image's end

    [[nodiscard]] static ImageGeometry for_image(std::uint64_t image_bytes_max,
                                                 layout::TableFormat format = layout::TableFormat::plain) noexcept;
};

/// Writes the image header into a fresh, zeroed image, mapped at the pool's base address. Call
/// inside a FASE. The tables after it are valid when zero.
void format_image(std::byte* base, std::uint64_t image_bytes_max, layout::TableFormat format = layout::TableFormat::plain) noexcept;

/// The maximum that an image has tables for; that of its pool may have been raised since.
struct ImageMaximum {
    std::uint64_t image_bytes_max;    ///< its tables are large enough for this
    std::uint64_t span_table_offset;  ///< ImageHeader has it
};
[[nodiscard]] ImageMaximum maximum_of(const std::byte* base) noexcept;
/// Stores another one into a mapped image's header. Call inside a FASE, or before the program runs.
void store_maximum(std::byte* base, const ImageMaximum& maximum) noexcept;

/// The format that a checked image's header names.
[[nodiscard]] layout::TableFormat table_format_of(const std::byte* base) noexcept;

/// 1 to 47 letters, digits, ".", "_" and "-".
[[nodiscard]] bool is_data_layout_name(std::string_view name) noexcept;

/// The superblock's word on the image.
struct ImageLimits {
    std::uint64_t image_bytes_first_max;
    std::uint64_t image_bytes_max;
    std::uintptr_t base_address = 0;  ///< differs from the mapping's where a tool maps the image elsewhere; 0: not compared
};

/// Validates the header of a recovered image, durable globals included. `format` is the engine's. A maximum that was raised may not have
/// come to the image yet. Errors: pool_corrupt, pool_version.
[[nodiscard]] Result<void> check_image(const std::byte* base, layout::TableFormat format, const ImageLimits& limits);

}  // namespace stillpoint

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

/// Where the parts of an image lie, in bytes from its base; a pure function of the maximum size.
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

/// The format that a checked image's header names.
[[nodiscard]] layout::TableFormat table_format_of(const std::byte* base) noexcept;

/// 1 to 47 letters, digits, ".", "_" and "-".
[[nodiscard]] bool is_data_layout_name(std::string_view name) noexcept;

/// Validates the header of a recovered image, durable globals included. `format` is the engine's. `base_address` is the pool's
/// (PoolFacts), which differs from `base` where a tool maps the image elsewhere; 0: not compared.
/// Errors: pool_corrupt, pool_version.
[[nodiscard]] Result<void> check_image(const std::byte* base, layout::TableFormat format, std::uint64_t image_bytes_max,
                                       std::uintptr_t base_address = 0);

}  // namespace stillpoint

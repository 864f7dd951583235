#pragma once
// The header of an image as a page of its own: for an image whose header is lost.

#include <cstddef>
#include <cstdint>

#include "pool/image_layout.hpp"

namespace stillpoint {

/// Into a page of zeroes that lies anywhere: without layout of the data and without durable globals, of which the lost header alone knew.
/// Not for an image whose maximum was raised.
void make_image_header(std::byte* page, std::uintptr_t base_address, std::uint64_t image_bytes_max, layout::TableFormat format) noexcept;

}  // namespace stillpoint

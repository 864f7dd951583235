#pragma once
// The place of an image page in the file.

#include <cstdint>

#include "pool/pool.hpp"

namespace stillpoint::respct {

/// File page of an image page. The page is inside the image.
[[nodiscard]] inline std::uint64_t file_page_of(const Pool& pool, std::uint64_t image_page) noexcept
{
    for (const Segment& segment : pool.segments()) {
        if (image_page - segment.first_image_page < segment.image_pages) {
            return segment.first_file_page + (image_page - segment.first_image_page);
        }
    }
    return UINT64_MAX;
}

[[nodiscard]] inline std::uint64_t file_offset_of(const Pool& pool, std::uint64_t image_page) noexcept
{
    return byte_offset(FilePage{file_page_of(pool, image_page)});
}

}  // namespace stillpoint::respct

#pragma once
// The contents of an image, page by page: taken of the live memory at a capture, and of a recovered image.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <sys/mman.h>
#include <vector>

#include "arch/checksum.hpp"
#include "core/units.hpp"

namespace stillpoint::explorer {

/// For each page, 0: it has no memory. A read of such a page would be a fault, and an image has thousands of them.
[[nodiscard]] inline std::vector<unsigned char> resident_pages(std::byte* base, std::uint64_t pages)
{
    std::vector<unsigned char> resident(pages);
    if (mincore(base, pages * page_bytes, resident.data()) != 0) {
        std::fill(resident.begin(), resident.end(), static_cast<unsigned char>(1));
    }
    std::transform(resident.begin(), resident.end(), resident.begin(),
                   [](unsigned char bits) { return static_cast<unsigned char>(bits & 1u); });
    return resident;
}

/// 0 for a page of zeroes.
[[nodiscard]] inline std::uint64_t page_digest(const std::byte* page) noexcept
{
    static constexpr std::byte zeroes[page_bytes] = {};
    return std::memcmp(page, zeroes, page_bytes) == 0 ? 0 : checksum64(page, page_bytes, 1) | 1;
}

/// Digest of a whole image; pages of zeroes, also after its end, add nothing.
[[nodiscard]] inline std::uint64_t image_digest(const std::vector<std::uint64_t>& page_digests) noexcept
{
    std::uint64_t sum = 0;
    for (std::size_t page = 0; page < page_digests.size(); ++page) {
        sum += page_digests[page] != 0 ? mix64(page, page_digests[page]) : 0;
    }
    return sum;
}

}  // namespace stillpoint::explorer

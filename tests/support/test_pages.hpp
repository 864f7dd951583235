#pragma once
// For the tests of this layer: pages to write, and what a medium holds.

#include <cstring>
#include <gtest/gtest.h>
#include <vector>

#include "core/units.hpp"
#include "media/medium.hpp"

namespace stillpoint::test {

struct alignas(page_bytes) Page {
    std::byte bytes[page_bytes];
};

/// Adjacent pages filled with 1, 2, 3, …
inline std::vector<Page> numbered_pages(std::size_t count)
{
    std::vector<Page> pages(count);
    for (std::size_t i = 0; i < count; ++i) {
        std::memset(pages[i].bytes, static_cast<int>(i + 1), page_bytes);
    }
    return pages;
}

inline BlockWrite write_of(const Page& page, std::uint64_t file_page) { return {file_page * page_bytes, page.bytes, page_bytes}; }

/// The value of every byte of a page of the medium; 256 where they differ or cannot be read.
inline unsigned page_value(const Medium& medium, std::uint64_t file_page)
{
    std::byte bytes[page_bytes];
    const auto read = medium.read(file_page * page_bytes, bytes);
    EXPECT_TRUE(read) << read.error().message;
    for (const std::byte byte : bytes) {
        if (!read || byte != bytes[0]) {
            return 256;
        }
    }
    return static_cast<unsigned>(bytes[0]);
}

}  // namespace stillpoint::test

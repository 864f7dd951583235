#pragma once
// For this layer's tests only: a small engine format and pools of it on a fake disk.

#include <gtest/gtest.h>

#include <memory>

#include "support/fake_medium.hpp"
#include "pool/pool.hpp"
#include "pool/superblock.hpp"

namespace stillpoint::testing {

/// One file page for each MiB of image: keeps the tests' disks small.
inline std::uint64_t small_segments(std::uint64_t image_pages) { return (image_pages + 255) / 256; }

inline constexpr EngineFormat test_format{"tester", 3, 4, small_segments};

inline Pool::CreateOptions test_options(std::uint64_t image_bytes = 4 * mib, std::uint64_t image_bytes_max = 64 * mib)
{
    return {.format = test_format, .image_bytes = image_bytes, .image_bytes_max = image_bytes_max};
}

/// A disk with a new pool on it, closed again.
inline std::shared_ptr<FakeDisk> disk_with_pool(const Pool::CreateOptions& options = test_options())
{
    auto disk = std::make_shared<FakeDisk>(Pool::file_bytes_for(options).value());
    const auto pool = Pool::create(attach(disk), options);
    EXPECT_TRUE(pool) << pool.error().message;
    disk->operations = 0;
    disk->syncs = 0;
    return disk;
}

inline Result<Pool> open_pool(const std::shared_ptr<FakeDisk>& disk, bool read_only = false)
{
    return Pool::open(attach(disk), test_format, read_only);
}

inline Result<Pool> open_content(const Bytes& content, bool read_only = false)
{
    return open_pool(std::make_shared<FakeDisk>(content), read_only);
}

inline layout::Superblock& superblock_of(Bytes& content, std::size_t copy)
{
    return *reinterpret_cast<layout::Superblock*>(content.data() + copy * page_bytes);
}

inline layout::Superblock superblock_copy(const Bytes& content, std::size_t copy)
{
    layout::Superblock block;
    std::memcpy(&block, content.data() + copy * page_bytes, sizeof block);
    return block;
}

}  // namespace stillpoint::testing

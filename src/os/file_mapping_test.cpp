// File mappings. Invariants: the address never changes; the range never meets the window of
// durable addresses; a refusal leaves the reservation whole.

#include <cerrno>
#include <cstdlib>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>

#include "core/units.hpp"
#include "os/descriptor.hpp"
#include "os/file_mapping.hpp"

namespace stillpoint::os {
namespace {

Descriptor file_of(std::uint64_t size, const char* parent = nullptr)
{
    const char* const temporary = std::getenv("TMPDIR");
    std::string path = parent != nullptr ? parent : temporary != nullptr ? temporary : ".";
    path += "/file-mapping-XXXXXX";
    Descriptor file{mkstemp(path.data())};
    unlink(path.c_str());
    EXPECT_EQ(ftruncate(file.get(), static_cast<off_t>(size)), 0);
    return file;
}

TEST(FileMapping, KeepsItsAddressWhenItGrows)
{
    const Descriptor file = file_of(8 * page_bytes);
    FileMapping mapping;
    ASSERT_EQ(mapping.reserve(gib, 4 * page_bytes), 0);
    ASSERT_EQ(mapping.extend(file.get(), 4 * page_bytes, FileMapping::Mode::shared), 0);
    std::byte* const base = mapping.base();
    base[page_bytes] = std::byte{5};
    ASSERT_EQ(mapping.extend(file.get(), 8 * page_bytes, FileMapping::Mode::shared), 0);
    EXPECT_EQ(mapping.base(), base);
    EXPECT_EQ(base[page_bytes], std::byte{5});
    EXPECT_EQ(base[8 * page_bytes - 1], std::byte{});
    EXPECT_EQ(mapping.size(), 8 * page_bytes);
}

TEST(FileMapping, TakesLessAddressSpaceWhereThereIsNotAsMuchAsItWants)
{
    FileMapping mapping;
    ASSERT_EQ(mapping.reserve(std::uint64_t{1} << 62, 4 * page_bytes), 0);
    EXPECT_GE(mapping.reserved(), 4 * page_bytes);
    EXPECT_LT(mapping.reserved(), std::uint64_t{1} << 62);
    const auto begin = reinterpret_cast<std::uintptr_t>(mapping.base());
    EXPECT_TRUE(begin >= window_base + window_bytes || begin + mapping.reserved() <= window_base);
}

TEST(FileMapping, RefusesToGrowBeyondItsReservation)
{
    const Descriptor file = file_of(8 * page_bytes);
    FileMapping mapping;
    ASSERT_EQ(mapping.reserve(4 * page_bytes, 4 * page_bytes), 0);
    EXPECT_EQ(mapping.extend(file.get(), 8 * page_bytes, FileMapping::Mode::shared), ENOMEM);
    EXPECT_EQ(mapping.extend(file.get(), 4 * page_bytes, FileMapping::Mode::shared), 0);
}

TEST(FileMapping, StaysUsableAfterTheKernelRefusesADirectMapping)
{
    const Descriptor file = file_of(page_bytes, "/dev/shm");  // tmpfs never grants MAP_SYNC.
    EXPECT_FALSE(FileMapping::grants_direct(file.get()));
    FileMapping mapping;
    ASSERT_EQ(mapping.reserve(mib, page_bytes), 0);
    EXPECT_EQ(mapping.extend(file.get(), page_bytes, FileMapping::Mode::shared_direct), EOPNOTSUPP);
    EXPECT_EQ(mapping.size(), 0u);
    ASSERT_EQ(mapping.extend(file.get(), page_bytes, FileMapping::Mode::shared), 0);
    EXPECT_EQ(mapping.base()[0], std::byte{});
}

}  // namespace
}  // namespace stillpoint::os

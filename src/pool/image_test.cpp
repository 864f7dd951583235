// Image header and geometry: the tables never overlap, fit in the smallest image, and a header
// that was changed anywhere it matters is refused.

#include "pool/image.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "pool/directory_layout.hpp"
#include "pool/image_layout.hpp"
#include "pool/pool.hpp"

namespace stillpoint {
namespace {

TEST(ImageGeometry, PlacesTheTablesWithoutOverlapForEveryMaximum)
{
    for (std::uint64_t maximum = Pool::image_bytes_min; maximum <= window_bytes; maximum = maximum * 9 / 8 / page_bytes * page_bytes) {
        const ImageGeometry geometry = ImageGeometry::for_image(maximum);
        EXPECT_EQ(geometry.directory_offset, page_bytes);
        EXPECT_EQ(geometry.directory_capacity & (geometry.directory_capacity - 1), 0U);
        EXPECT_GE(geometry.sync_objects_offset, geometry.directory_offset + geometry.directory_capacity * sizeof(layout::DirectoryRecord));
        EXPECT_GE(geometry.heap_offset, geometry.sync_objects_offset + geometry.sync_objects_capacity * sizeof(layout::SyncObjectRecord));
        EXPECT_EQ(geometry.heap_offset % (64 * kib), 0U);
        EXPECT_LT(geometry.heap_offset, Pool::image_bytes_min) << "a small image of a large pool";
    }
    EXPECT_EQ(ImageGeometry::for_image(16 * gib).directory_capacity, 16384U);
    EXPECT_EQ(ImageGeometry::for_image(16 * gib).sync_objects_capacity, 65536U);
    EXPECT_EQ(ImageGeometry::for_image(4 * mib).directory_capacity, 128U);
}

struct ImageHeaderTest : ::testing::Test {
    static constexpr std::uint64_t maximum = 64 * mib;
    alignas(page_bytes) std::byte page[page_bytes] = {};
    layout::ImageHeader& header = *reinterpret_cast<layout::ImageHeader*>(page);

    ImageHeaderTest() { format_image(page, maximum); }
};

TEST_F(ImageHeaderTest, IsAcceptedAsItWasWritten)
{
    EXPECT_TRUE(check_image(page, layout::TableFormat::plain, {maximum, maximum}));
    EXPECT_TRUE(check_image(page, layout::TableFormat::plain, {maximum, maximum, reinterpret_cast<std::uintptr_t>(page)}));
}

TEST_F(ImageHeaderTest, IsRefusedForAnotherMaximumOrBaseAddress)
{
    EXPECT_EQ(check_image(page, layout::TableFormat::plain, {maximum / 2, maximum / 2}).error().code, SP_E_POOL_CORRUPT);
    EXPECT_EQ(check_image(page, layout::TableFormat::plain, {maximum, maximum, window_base}).error().code, SP_E_POOL_CORRUPT);
}

TEST_F(ImageHeaderTest, IsRefusedWithTheTablesOfAnotherKindOfEngine)
{
    EXPECT_EQ(check_image(page, layout::TableFormat::logged, {maximum, maximum}).error().code, SP_E_POOL_CORRUPT);
    std::memset(page, 0, sizeof page);
    format_image(page, maximum, layout::TableFormat::logged);
    EXPECT_TRUE(check_image(page, layout::TableFormat::logged, {maximum, maximum}));
    EXPECT_EQ(check_image(page, layout::TableFormat::plain, {maximum, maximum}).error().code, SP_E_POOL_CORRUPT);
}

TEST_F(ImageHeaderTest, IsRefusedWhenItWasNeverWritten)
{
    std::memset(page, 0, sizeof page);
    EXPECT_EQ(check_image(page, layout::TableFormat::plain, {maximum, maximum}).error().code, SP_E_POOL_CORRUPT);
}

TEST_F(ImageHeaderTest, IsRefusedWithAnyFlippedBitOfItsFixedPart)
{
    for (std::size_t bit = 0; bit < offsetof(layout::ImageHeader, data_layout) * 8; ++bit) {
        page[bit / 8] ^= std::byte{1} << (bit % 8);
        EXPECT_FALSE(check_image(page, layout::TableFormat::plain, {maximum, maximum})) << "bit " << bit;
        page[bit / 8] ^= std::byte{1} << (bit % 8);
    }
}

TEST_F(ImageHeaderTest, IsRefusedWithDurableGlobalsOutsideTheHeap)
{
    const std::uint64_t heap = header.heap_offset;
    auto& globals = header.durable_globals[31];
    std::memcpy(globals.name, "program", 8);
    struct Case {
        std::uint64_t offset;
        std::uint64_t size;
        bool good;
    };
    const Case cases[] = {{heap, 100, true},  {heap, maximum - heap, true}, {heap - 1, 1, false},      {heap, maximum - heap + 1, false},
                          {maximum, 0, true}, {maximum + 1, 0, false},      {heap, UINT64_MAX, false}, {UINT64_MAX, 2, false}};
    for (const Case& one : cases) {
        globals.image_offset = one.offset;
        globals.size = one.size;
        EXPECT_EQ(check_image(page, layout::TableFormat::plain, {maximum, maximum}).has_value(), one.good) << one.offset << " " << one.size;
    }
    globals.image_offset = heap;
    globals.size = 1;
    std::memset(globals.name, 'x', sizeof globals.name);
    EXPECT_FALSE(check_image(page, layout::TableFormat::plain, {maximum, maximum})) << "a name that is not terminated";
}

}  // namespace
}  // namespace stillpoint

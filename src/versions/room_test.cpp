#include "versions/room.hpp"

#include <gtest/gtest.h>

#include "support/epochs_on_patched_file.hpp"
#include "versions/delta_layout.hpp"

namespace stillpoint::versions {
namespace {

/// The image of a new pool that may grow to 16 GiB.
constexpr std::uint64_t image_bytes = 9 * mib;
constexpr std::uint64_t room_pages = image_bytes / page_bytes;
const EngineFormat room_format{"room", 1, commit_area_pages, &segment_file_pages_with_deltas, 1, &pages_without_room_with_deltas};
const Pool::CreateOptions room_options{room_format, image_bytes, 16 * gib};

/// A pool on a disk.
class RoomOn : public testing::EpochsOnPatchedFile {
protected:
    RoomOn() : EpochsOnPatchedFile(room_options) {}
    void SetUp() override { make(Room::on_disk); }
    Result<void> write(std::uint64_t begin, std::uint64_t end)
    {
        auto written = write_pages(begin, end);
        return written ? commit() : written;
    }
    [[nodiscard]] std::uint64_t without_room() const { return file_->bytes_without_room(); }
};

TEST_P(RoomOn, ASmallPoolTakesLittleOfTheDisk)
{
    EXPECT_LT(*Pool::file_bytes_for(room_options) - without_room(), 4 * mib);
    open();
    const std::uint64_t before = without_room();
    for (unsigned epoch = 0; epoch < 200; ++epoch) {  // The heap's spans, and the begin of its tables.
        ASSERT_TRUE(write(room_pages - 240, room_pages));
        ASSERT_TRUE(write(0, 20));
    }
    EXPECT_EQ(without_room(), before);
    EXPECT_EQ(file_->writes_without_room(), 0U);
}

TEST_P(RoomOn, IsTakenWhenMorePagesAreWritten)
{
    open();
    const std::uint64_t before = without_room();
    ASSERT_TRUE(write(0, room_pages / 2));
    EXPECT_LT(without_room(), before);
    for (unsigned epoch = 0; epoch < 5; ++epoch) {
        const auto written = write(0, room_pages);
        ASSERT_TRUE(written) << written.error().text();
    }
    open();  // Copies lie where a new pool has no room.
    for (unsigned epoch = 0; epoch < 3; ++epoch) {
        const auto written = write(0, room_pages);
        ASSERT_TRUE(written) << written.error().text();
    }
    EXPECT_EQ(file_->writes_without_room(), 0U);
}

TEST_P(RoomOn, AFullDiskIsAnErrorOnlyWhenNoPageIsLeft)
{
    open();
    file_->disk_is_full = true;
    ASSERT_TRUE(write(0, 270));
    ASSERT_TRUE(write(0, 270));
    const auto full = write(0, 500);
    ASSERT_FALSE(full);
    EXPECT_EQ(full.error().code, SP_E_NO_SPACE);
    EXPECT_EQ(file_->writes_without_room(), 0U);
}

TEST_P(RoomOn, GrowthTakesWhatTheTablesNeed)
{
    open();
    const std::uint64_t before = without_room();
    ASSERT_TRUE(take_room_for_tables(*pool_, room_format, image_bytes));
    EXPECT_EQ(without_room(), before);
    ASSERT_TRUE(take_room_for_tables(*pool_, room_format, gib));
    EXPECT_NEAR(static_cast<double>(before - without_room()), 2.0 * 20 * (gib / 65536), 2.0 * page_bytes);
    ASSERT_TRUE(take_room_for_tables(*pool_, room_format, 16 * gib));
    EXPECT_GT(before - without_room(), 9 * mib);
    file_->disk_is_full = true;
    EXPECT_TRUE(take_room_for_tables(*pool_, room_format, gib));
}
INSTANTIATE_TEST_SUITE_P(Media, RoomOn, ::testing::Bool());

TEST(Room, IsLeftOutOnlyWhereTheTablesAreLarge)
{
    const auto without = [](std::uint64_t bytes, std::uint64_t maximum) {
        const FileRange range = Pool::bytes_without_room({room_format, bytes, maximum}, Room::on_disk).front();
        return range.end - range.begin;
    };
    EXPECT_EQ(without(4 * mib, 16 * mib), 0U);
    EXPECT_GT(without(64 * mib, 16 * gib), 14 * mib);
    EXPECT_LT(without(4 * mib, 16 * gib), 8 * mib) << "all of its pages are tables";
}

}  // namespace
}  // namespace stillpoint::versions

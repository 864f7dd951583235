#include "versions/room.hpp"

#include <cstring>
#include <gtest/gtest.h>
#include <vector>

#include "pool/commit_record.hpp"
#include "support/patched_medium.hpp"
#include "versions/delta_layout.hpp"
#include "versions/epoch_writer.hpp"
#include "versions/recovered_state.hpp"

namespace stillpoint::versions {
namespace {

/// The image of a new pool that may grow to 16 GiB.
constexpr std::uint64_t image_bytes = 9 * mib;
constexpr std::uint64_t room_pages = image_bytes / page_bytes;
const EngineFormat room_format{"room", 1, commit_area_pages, &segment_file_pages_with_deltas, 1, &pages_without_room_with_deltas};
const Pool::CreateOptions room_options{room_format, image_bytes, 16 * gib};

/// A pool on a disk that counts what is written where it has no room, and the writer of its epochs.
class RoomOn : public ::testing::TestWithParam<bool> {
protected:
    void SetUp() override
    {
        file_ = std::make_shared<testing::PatchedFile>(std::vector<std::byte>(*Pool::file_bytes_for(room_options)));
        file_->leave_without_room(Pool::bytes_without_room(room_options, Room::on_disk));
        ASSERT_TRUE(Pool::create(std::make_unique<testing::PatchedMedium>(file_), room_options));
    }
    void open()
    {
        writer_.reset();
        table_.emplace();
        locations_.emplace();
        auto pool = Pool::open(std::make_unique<testing::PatchedMedium>(file_, GetParam()), room_format);
        ASSERT_TRUE(pool);
        pool_.emplace(std::move(*pool));
        const auto state = recover_state(*pool_, *table_, *locations_, nullptr, nullptr);
        ASSERT_TRUE(state) << state.error().text();
        epoch_ = state->next_epoch;
        writer_.emplace(*pool_, *table_, *locations_, lock_);
        ASSERT_TRUE(begin_run(*pool_));
        ASSERT_TRUE(writer_->reserve(16 * gib / page_bytes));
    }
    /// An epoch in which these pages are written, with the epoch's number in them.
    Result<void> write(std::uint64_t begin, std::uint64_t end)
    {
        writer_->begin(epoch_);
        static std::byte copies[room_pages * page_bytes];
        for (std::uint64_t page = begin; page < end; ++page) {
            std::byte* const copy = copies + (page - begin) * page_bytes;
            std::memset(copy, static_cast<int>(epoch_ + 1), page_bytes);
            if (auto written = writer_->write_page(page - begin, page, copy, true); !written) {
                return pass_on(written.error());
            }
        }
        auto done = writer_->commit({epoch_, room_pages, 0, false});
        ++epoch_;
        return done;
    }
    [[nodiscard]] std::uint64_t without_room() const { return file_->bytes_without_room(); }

    std::shared_ptr<testing::PatchedFile> file_;
    std::optional<Pool> pool_;
    std::optional<VersionTable> table_;
    std::optional<LocationAllocator> locations_;
    os::FutexLock lock_;
    std::optional<EpochWriter> writer_;
    std::uint64_t epoch_ = 0;
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

#include <gtest/gtest.h>

#include "support/epochs_on_patched_file.hpp"
#include "versions/delta_layout.hpp"
#include "versions/room.hpp"

namespace stillpoint::versions {
namespace {

constexpr std::uint64_t late_image_bytes = 16 * mib;
constexpr std::uint64_t late_pages = late_image_bytes / page_bytes;
constexpr std::uint64_t second_ns = 1'000'000'000;
const EngineFormat late_format{"late", 1, commit_area_pages, &segment_file_pages_with_deltas, 1, &pages_without_room_with_deltas};
const Pool::CreateOptions late_options{late_format, late_image_bytes, gib};

/// A pool in memory.
class LateRoom : public testing::EpochsOnPatchedFile {
protected:
    LateRoom() : EpochsOnPatchedFile(late_options) { rules_.await_room = {&await_room, this}; }
    void SetUp() override
    {
        make(Room::in_memory);
        open();
    }
    Deltas* before_recovery() override
    {
        deltas_.emplace();
        locations_->expect_late_second_copies();
        deltas_->log.expect_late_room();
        return &*deltas_;
    }
    void after_recovery() override { note_first_copies_without_room(*pool_, late_format, *table_, *locations_); }
    static bool await_room(void* self, const Failure& refusal) noexcept
    {
        auto& test = *static_cast<LateRoom*>(self);
        EXPECT_EQ(refusal.code, SP_E_NO_SPACE);
        test.file_->disk_is_full = ++test.waits_ != test.room_comes_after_;
        return test.waits_ < 10;
    }
    /// An epoch in which each `step`-th page is written; with `line_of_page` that page has a line in the log.
    Result<void> write(std::uint64_t begin, std::uint64_t end, std::uint64_t step = 1, std::optional<std::uint32_t> line_of_page = {})
    {
        deltas_->log.begin_epoch(epoch_);
        if (auto written = write_pages(begin, end, step); !written) {
            return written;
        }
        alignas(page_bytes) static const std::byte line[page_bytes] = {};
        const std::uint32_t pages[] = {line_of_page.value_or(0)};
        const std::uint64_t masks[] = {1};
        return commit(&deltas_->log, line_of_page ? DeltaBatch{pages, masks, line, 1} : DeltaBatch{});
    }
    [[nodiscard]] std::uint64_t room_bytes() const { return file_->bytes().size() - file_->bytes_without_room(); }

    std::optional<Deltas> deltas_;
    int waits_ = 0;
    int room_comes_after_ = 0;
};

TEST_P(LateRoom, OneCopyOfEachPageHasRoomAtFirst)
{
    EXPECT_LT(room_bytes(), late_image_bytes + late_image_bytes / 8);
    const std::uint64_t before = room_bytes();
    ASSERT_TRUE(write(late_pages / 2, late_pages));
    EXPECT_EQ(room_bytes(), before);
    EXPECT_EQ(file_->writes_without_room(), 0U);
}

TEST_P(LateRoom, SecondCopiesGetItWhenThePageIsWrittenAgain)
{
    ASSERT_TRUE(write(0, late_pages));
    const std::uint64_t before = room_bytes();
    for (unsigned epoch = 0; epoch < 20; ++epoch) {
        ASSERT_TRUE(write(1, late_pages, 50));
    }
    EXPECT_LE(room_bytes(), before + late_image_bytes / 4);
    open();
    for (unsigned epoch = 0; epoch < 5; ++epoch) {
        ASSERT_TRUE(write(0, late_pages));
    }
    EXPECT_EQ(file_->writes_without_room(), 0U);
}

TEST_P(LateRoom, TheLogGetsItWhenItIsUsed)
{
    ASSERT_TRUE(write(0, late_pages));
    ASSERT_TRUE(write(0, 1, 1, 7));
    ASSERT_TRUE(write(0, 1, 1, 8));
    EXPECT_EQ(deltas_->log.live_batches(), 2U);
    EXPECT_EQ(file_->writes_without_room(), 0U);
    open();
    EXPECT_EQ(deltas_->log.live_batches(), 2U);
    ASSERT_TRUE(write(0, 1, 1, 9));
    EXPECT_EQ(file_->writes_without_room(), 0U);
}

TEST_P(LateRoom, AGrownPoolHasNoneForSecondCopies)
{
    ASSERT_TRUE(write(0, late_pages));
    const std::uint64_t before = room_bytes();
    ASSERT_TRUE(pool_->grow(2 * late_image_bytes, late_format));
    EXPECT_LT(room_bytes(), before + late_image_bytes + late_image_bytes / 8);
    table_->extend(pool_->segments().back());
    locations_->add_segment(pool_->segments().back());
    deltas_->log.add_segment(pool_->segments().back());
    for (unsigned epoch = 0; epoch < 5; ++epoch) {
        ASSERT_TRUE(write(0, 2 * late_pages));
    }
    EXPECT_EQ(file_->writes_without_room(), 0U);
}

TEST_P(LateRoom, AFullFileSystemIsWaitedFor)
{
    ASSERT_TRUE(write(0, late_pages));
    file_->disk_is_full = true;
    room_comes_after_ = 3;
    for (unsigned epoch = 0; epoch < 3; ++epoch) {
        const auto written = write(0, late_pages);
        ASSERT_TRUE(written) << written.error().text();
    }
    EXPECT_EQ(waits_, 3);
    EXPECT_EQ(file_->writes_without_room(), 0U);
}

TEST_P(LateRoom, AnEpochThatIsNotWaitedForFails)
{
    ASSERT_TRUE(write(0, late_pages));
    file_->disk_is_full = true;
    Result<void> written;
    for (unsigned epoch = 0; epoch < 3 && written; ++epoch) {
        written = write(0, late_pages);
    }
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, SP_E_NO_SPACE);
    EXPECT_EQ(waits_, 10);
    file_->disk_is_full = false;
    open();
    ASSERT_TRUE(write(0, late_pages));
    EXPECT_EQ(file_->writes_without_room(), 0U);
}

TEST_P(LateRoom, GoesBackWhenPagesAreNotWrittenAgain)
{
    ASSERT_TRUE(write(0, late_pages));
    const std::uint64_t before = room_bytes();
    ASSERT_TRUE(write(0, late_pages));
    ASSERT_TRUE(write(0, late_pages));
    const std::uint64_t with_both = room_bytes();
    EXPECT_GT(with_both, before + late_image_bytes / 2);
    std::uint64_t now_ns = 20 * second_ns;
    writer_->return_room(now_ns);
    EXPECT_EQ(room_bytes(), with_both) << "all were written lately";
    writer_->return_room(now_ns += 4 * second_ns);
    EXPECT_EQ(room_bytes(), with_both);
    ASSERT_TRUE(write(0, 100));
    writer_->return_room(now_ns += 2 * second_ns);
    if (GetParam()) {
        EXPECT_LE(room_bytes(), before + 100 * page_bytes);
    }
    for (unsigned epoch = 0; epoch < 3; ++epoch) {
        ASSERT_TRUE(write(0, late_pages));
    }
    EXPECT_EQ(file_->writes_without_room(), 0U);
    const std::uint64_t all = room_bytes();
    open();
    EXPECT_EQ(table_->pages_present(), late_pages);
    writer_->return_room(now_ns);
    if (GetParam()) {
        EXPECT_LT(room_bytes(), all - late_image_bytes / 2) << "what an earlier run has left";
    }
    for (unsigned epoch = 0; epoch < 3; ++epoch) {
        ASSERT_TRUE(write(0, late_pages));
    }
    EXPECT_EQ(file_->writes_without_room(), 0U);
}
INSTANTIATE_TEST_SUITE_P(Media, LateRoom, ::testing::Bool());

}  // namespace
}  // namespace stillpoint::versions

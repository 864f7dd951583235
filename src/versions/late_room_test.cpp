#include <cstring>
#include <gtest/gtest.h>
#include <vector>

#include "pool/commit_record.hpp"
#include "support/patched_medium.hpp"
#include "versions/delta_layout.hpp"
#include "versions/epoch_writer.hpp"
#include "versions/recovered_state.hpp"
#include "versions/room.hpp"

namespace stillpoint::versions {
namespace {

constexpr std::uint64_t late_image_bytes = 16 * mib;
constexpr std::uint64_t late_pages = late_image_bytes / page_bytes;
constexpr std::uint64_t second_ns = 1'000'000'000;
const EngineFormat late_format{"late", 1, commit_area_pages, &segment_file_pages_with_deltas, 1, &pages_without_room_with_deltas};
const Pool::CreateOptions late_options{late_format, late_image_bytes, gib};

/// A pool in memory, and the writer of its epochs.
class LateRoom : public ::testing::TestWithParam<bool> {
protected:
    void SetUp() override
    {
        file_ = std::make_shared<testing::PatchedFile>(std::vector<std::byte>(*Pool::file_bytes_for(late_options)));
        file_->is_memory = true;
        file_->leave_without_room(Pool::bytes_without_room(late_options, Room::in_memory));
        ASSERT_TRUE(Pool::create(std::make_unique<testing::PatchedMedium>(file_), late_options));
        open();
    }
    void open()
    {
        writer_.reset();
        table_.emplace();
        locations_.emplace();
        deltas_.emplace();
        auto pool = Pool::open(std::make_unique<testing::PatchedMedium>(file_, GetParam()), late_format);
        ASSERT_TRUE(pool);
        pool_.emplace(std::move(*pool));
        locations_->expect_late_second_copies();
        deltas_->log.expect_late_room();
        const auto state = recover_state(*pool_, *table_, *locations_, nullptr, &*deltas_);
        ASSERT_TRUE(state) << state.error().text();
        const auto tables = late_format.without_room(pool_->segments().front(), late_options.image_bytes_max, Room::in_memory).front();
        locations_->note_without_room(tables);
        note_places_beside_copies(*pool_, *table_, *locations_);
        epoch_ = state->next_epoch;
        writer_.emplace(*pool_, *table_, *locations_, lock_, EpochWriter::WriteRules{.await_room = {&await_room, this}});
        ASSERT_TRUE(begin_run(*pool_));
        ASSERT_TRUE(writer_->reserve(gib / page_bytes));
    }
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
        static std::byte copies[2 * late_pages * page_bytes];
        writer_->begin(epoch_);
        deltas_->log.begin_epoch(epoch_);
        std::uint64_t index = 0;
        for (std::uint64_t page = begin; page < end; page += step, ++index) {
            std::byte* const copy = copies + index * page_bytes;
            std::memset(copy, static_cast<int>(epoch_ + 1), page_bytes);
            if (auto written = writer_->write_page(index, page, copy, true); !written) {
                return pass_on(written.error());
            }
        }
        alignas(page_bytes) static const std::byte line[page_bytes] = {};
        const std::uint32_t pages[] = {line_of_page.value_or(0)};
        const std::uint64_t masks[] = {1};
        const DeltaBatch batch = line_of_page ? DeltaBatch{pages, masks, line, 1} : DeltaBatch{};
        auto done = writer_->commit({epoch_, pool_->facts().image_bytes / page_bytes, 0, false, &deltas_->log, batch});
        ++epoch_;
        return done;
    }
    [[nodiscard]] std::uint64_t room_bytes() const { return file_->bytes().size() - file_->bytes_without_room(); }

    std::shared_ptr<testing::PatchedFile> file_;
    std::optional<Pool> pool_;
    std::optional<VersionTable> table_;
    std::optional<LocationAllocator> locations_;
    std::optional<Deltas> deltas_;
    os::FutexLock lock_;
    std::optional<EpochWriter> writer_;
    std::uint64_t epoch_ = 0;
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

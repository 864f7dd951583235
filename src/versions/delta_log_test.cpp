// Invariants of the delta log, against a model: after each epoch a restart finds the pages as the model has them, whatever part of them
// were lines, however often the log came round; no crash between two writes loses an epoch or mixes two; and no damaged byte of heads,
// indexes or lines is taken for another state.

#include <array>
#include <bit>
#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

#include "pool/commit_record.hpp"
#include "support/crash_medium.hpp"
#include "support/patched_medium.hpp"
#include "support/recovered_image.hpp"
#include "versions/epoch_writer.hpp"

namespace stillpoint::versions {
namespace {

constexpr std::uint64_t image_pages = 1024;
constexpr std::uint64_t area_pages = commit_area_pages;
const EngineFormat format{"deltas", 1, area_pages, &segment_file_pages_with_deltas};

using PageBytes = std::array<std::byte, page_bytes>;
using Model = std::map<std::uint64_t, PageBytes>;

/// An open pool, and an epoch at a time with random pages and lines of a model.
class Opened {
public:
    explicit Opened(Pool pool) : pool_(std::move(pool)), writer_(pool_, table_, locations_, lock_, {.between_pieces = {&piece_done, this}})
    {
    }

    /// Empty: it was refused.
    [[nodiscard]] std::optional<RecoveredImage> open()
    {
        auto image = recover_image(pool_, table_, locations_, nullptr, &deltas_);
        if (!image) {
            problem_ = std::string(image.error().text());
            return std::nullopt;
        }
        epoch_ = image->next_epoch;
        return std::move(*image);
    }
    void begin()
    {
        ASSERT_TRUE(begin_run(pool_));
        ASSERT_TRUE(writer_.reserve(image_pages));
    }

    /// Pages of [0, pages_end); a tenth of them whole.
    void take_epoch(Model& model, std::mt19937_64& random, std::uint64_t pages_end, std::uint64_t stores)
    {
        DeltaLog& log = deltas_.log;
        log.begin_epoch(epoch_);
        std::map<std::uint64_t, bool> whole;
        log.visit_due(table_, [&](std::uint64_t page) { whole[page] = true; });
        std::vector<std::uint32_t> pages;
        std::vector<std::uint64_t> masks;
        std::uint64_t lines = 0;
        for (std::uint64_t i = 0; i < stores; ++i) {
            const std::uint64_t page = random() % pages_end;
            PageBytes& bytes = model[page];
            std::uint64_t mask = random() & random() & random() & random() & random();
            mask |= std::uint64_t{1} << (random() % lines_per_page);
            const auto count = static_cast<std::uint64_t>(std::popcount(mask));
            if (whole.contains(page) || table_.consistent(page).epoch == 0 || random() % 10 == 0 ||
                !log.has_room(pages.size() + 1, lines + count)) {
                whole[page] = true;
            }
            pages.push_back(static_cast<std::uint32_t>(page));
            masks.push_back(mask);
            for (std::uint64_t line = 0; line < lines_per_page; ++line) {
                if (((mask >> line) & 1U) != 0) {
                    const std::uint64_t value = random();
                    std::memcpy(bytes.data() + line * cache_line_bytes, &value, sizeof value);
                }
            }
            if (whole.contains(page)) {  // They come with the page's copy.
                pages.pop_back();
                masks.pop_back();
            } else {
                std::byte* to = lines_ + lines * cache_line_bytes;
                for (std::uint64_t rest = mask; rest != 0; rest &= rest - 1, to += cache_line_bytes) {
                    std::memcpy(to, bytes.data() + static_cast<unsigned>(std::countr_zero(rest)) * cache_line_bytes, cache_line_bytes);
                }
                lines += count;
            }
        }
        writer_.begin(epoch_);
        std::uint64_t index = 0;
        for (const auto& [page, is_whole] : whole) {
            std::memcpy(copies_ + index * page_bytes, model[page].data(), page_bytes);
            ASSERT_TRUE(writer_.write_page(index, page, copies_ + index * page_bytes, true));
            ++index;
        }
        lines_written += lines;
        pages_whole += index;
        ASSERT_TRUE(writer_.commit({epoch_, image_pages, 0, false, &log, {pages, masks, lines_, lines}}));
        ++epoch_;
    }

    [[nodiscard]] const DeltaLog& log() const { return deltas_.log; }
    [[nodiscard]] const std::string& problem() const { return problem_; }
    std::uint64_t lines_written = 0;
    std::uint64_t pages_whole = 0;
    std::uint64_t pieces = 0;

private:
    static void piece_done(void* self) noexcept
    {
        auto& opened = *static_cast<Opened*>(self);
        EXPECT_TRUE(opened.lock_.try_lock()) << "the program's allocations would wait with the checkpoint";
        opened.lock_.unlock();
        ++opened.pieces;
    }

    alignas(page_bytes) static inline std::byte lines_[(image_pages + 64) * page_bytes];
    alignas(page_bytes) static inline std::byte copies_[image_pages * page_bytes];

    Pool pool_;
    VersionTable table_;
    LocationAllocator locations_;
    Deltas deltas_;
    os::FutexLock lock_;
    EpochWriter writer_;
    std::uint64_t epoch_ = 0;
    std::string problem_;
};

Pool::CreateOptions options() { return {format, image_pages * page_bytes, image_pages * page_bytes}; }

std::shared_ptr<testing::PatchedFile> new_file()
{
    const auto size = Pool::file_bytes_for(options());
    auto file = std::make_shared<testing::PatchedFile>(std::vector<std::byte>(*size));
    EXPECT_TRUE(Pool::create(std::make_unique<testing::PatchedMedium>(file), options()));
    return file;
}

bool holds(const RecoveredImage& image, const Model& model)
{
    if (image.pages.size() != model.size()) {
        return false;
    }
    return std::all_of(image.pages.begin(), image.pages.end(), [&](const auto& page) {
        const auto found = model.find(page.first);
        return found != model.end() && std::memcmp(found->second.data(), page.second.data(), page_bytes) == 0;
    });
}

std::unique_ptr<Opened> reopen(const std::shared_ptr<testing::PatchedFile>& file, bool mapped)
{
    auto pool = Pool::open(std::make_unique<testing::PatchedMedium>(file, mapped), format);
    return pool ? std::make_unique<Opened>(std::move(*pool)) : nullptr;
}

class DeltaLogOn : public ::testing::TestWithParam<bool> {};

TEST_P(DeltaLogOn, EveryRestartFindsTheModelsPages)
{
    std::mt19937_64 random(7);
    const auto file = new_file();
    Model model;
    std::uint64_t pages_through = 0;
    for (unsigned session = 0; session < 60; ++session) {
        const auto run = reopen(file, GetParam());
        ASSERT_NE(run, nullptr);
        const auto image = run->open();
        ASSERT_TRUE(image) << run->problem();
        ASSERT_TRUE(holds(*image, model)) << "session " << session;
        run->begin();
        for (std::uint64_t epochs = random() % 40; epochs != 0; --epochs) {
            run->take_epoch(model, random, 1 + random() % image_pages, random() % 1200);
            ASSERT_LE(run->log().live_pages(), run->log().row_pages());
        }
        pages_through += run->lines_written / lines_per_page;
    }
    EXPECT_GT(pages_through, 2 * image_pages) << "the log did not come round";
}

TEST_P(DeltaLogOn, ALongCommitIsInPiecesBetweenWhichNoLockIsHeld)
{
    std::mt19937_64 random(5);
    Model model;
    const auto run = reopen(new_file(), GetParam());
    ASSERT_TRUE(run->open());
    run->begin();
    run->take_epoch(model, random, image_pages, image_pages);
    run->pieces = 0;
    run->lines_written = 0;
    run->take_epoch(model, random, image_pages, 4 * image_pages);
    const std::uint64_t parts_of_lines = run->lines_written * cache_line_bytes / delta_block_bytes;
    EXPECT_GT(parts_of_lines, 2U);
    EXPECT_GE(run->pieces, (GetParam() ? 2 : 1) * parts_of_lines);
}

INSTANTIATE_TEST_SUITE_P(Media, DeltaLogOn, ::testing::Bool());

TEST(DeltaLog, WritesFewPagesWholeForItsOwnSake)
{
    std::mt19937_64 random(3);
    const auto file = new_file();
    Model model;
    const auto run = reopen(file, true);
    ASSERT_TRUE(run->open());
    run->begin();
    run->take_epoch(model, random, 256, 5000);
    run->pages_whole = 0;
    for (unsigned epoch = 0; epoch < 400; ++epoch) {
        run->take_epoch(model, random, 256, 20);
    }
    // Two of 20 are whole by the test's own dice.
    EXPECT_LT(run->pages_whole, 400U * 6);
    EXPECT_GT(run->log().live_batches(), 10U);
}

/// A crash when the medium had been told so much: what is left is one of the two epochs, whole.
TEST(DeltaLog, NoCrashLosesAnEpochOrMixesTwo)
{
    std::mt19937_64 random(11);
    const auto size = Pool::file_bytes_for(options());
    auto memory = std::make_shared<test::CrashMemory>(*size);
    ASSERT_TRUE(Pool::create(std::make_unique<test::CrashMedium>(memory), options()));
    Model before;
    std::uint64_t crashes = 0;
    for (unsigned session = 0; session < 4; ++session) {
        auto pool = Pool::open(std::make_unique<test::CrashMedium>(memory), format);
        ASSERT_TRUE(pool);
        Opened run(std::move(*pool));
        ASSERT_TRUE(run.open()) << run.problem();
        run.begin();
        std::vector<std::byte> left;
        for (unsigned epoch = 0; epoch < 6; ++epoch) {
            std::vector<std::vector<std::byte>> crashed;
            memory->before_fence = [&] {
                using Lines = test::CrashMemory::Lines;
                for (const Lines lines : {Lines::none, Lines::all, Lines::some}) {
                    crashed.push_back(memory->crash(lines, random));
                }
            };
            Model after = before;
            run.take_epoch(after, random, image_pages, random() % 300);
            memory->before_fence = nullptr;
            for (const auto& content : crashed) {
                auto again = Pool::open(std::make_unique<test::CrashMedium>(std::make_shared<test::CrashMemory>(content)), format);
                ASSERT_TRUE(again);
                Opened restarted(std::move(*again));
                const auto image = restarted.open();
                ASSERT_TRUE(image) << restarted.problem();
                ASSERT_TRUE(holds(*image, before) || holds(*image, after)) << "session " << session << ", epoch " << epoch;
                ++crashes;
            }
            before = std::move(after);
            left = std::move(crashed.back());
        }
        // The next session begins after a crash in the last epoch of this one.
        memory = std::make_shared<test::CrashMemory>(left);
        auto again = Pool::open(std::make_unique<test::CrashMedium>(memory), format);
        ASSERT_TRUE(again);
        Opened restarted(std::move(*again));
        const auto image = restarted.open();
        ASSERT_TRUE(image) << restarted.problem();
        before.clear();
        for (const auto& [page, bytes] : image->pages) {
            std::copy(bytes.begin(), bytes.end(), before[page].begin());
        }
    }
    EXPECT_GT(crashes, 100U);
}

TEST(DeltaLog, NoDamagedByteIsTakenForAnotherState)
{
    std::mt19937_64 random(5);
    const auto file = new_file();
    Model model;
    {
        const auto run = reopen(file, true);
        ASSERT_TRUE(run->open());
        run->begin();
        run->take_epoch(model, random, 200, 3000);
        for (unsigned epoch = 0; epoch < 9; ++epoch) {
            run->take_epoch(model, random, 200, 30);
        }
        ASSERT_GT(run->log().live_batches(), 3U);
    }
    const auto damaged = std::make_shared<testing::PatchedFile>(file->bytes());
    const auto pool = Pool::open(std::make_unique<testing::PatchedMedium>(damaged, true), format, true);
    ASSERT_TRUE(pool);
    const std::uint64_t first = first_delta_page(pool->segments()[0]);
    std::uint64_t refused = 0;
    std::uint64_t same = 0;
    const auto judge = [&](std::uint64_t at) {
        const auto run = reopen(damaged, true);
        ASSERT_NE(run, nullptr);
        const auto image = run->open();
        if (!image) {
            ++refused;
            EXPECT_FALSE(run->problem().empty());
        } else {
            ++same;
            EXPECT_TRUE(holds(*image, model)) << "byte " << at;
        }
        damaged->undo();
    };
    constexpr std::uint64_t heads_bytes = delta_head_pages * page_bytes;
    for (unsigned i = 0; i < 600; ++i) {
        // Heads, then the batches' pages.
        const std::uint64_t at = i % 4 == 0 ? random() % delta_head_pages * page_bytes + random() % sizeof(DeltaHead)
                                            : heads_bytes + random() % (40 * page_bytes);
        damaged->flip_bit(8 * (first * page_bytes + at) + random() % 8);
        judge(at);
    }
    EXPECT_GT(refused, 100U);
    EXPECT_GT(same, 50U);
    // Each head has a twin.
    for (std::uint64_t page = 0; page < delta_head_pages; ++page) {
        damaged->flip_bit(8 * ((first + page) * page_bytes + 20));
        const auto run = reopen(damaged, true);
        const auto image = run->open();
        ASSERT_TRUE(image) << run->problem();
        EXPECT_TRUE(holds(*image, model));
        damaged->undo();
    }
}

}  // namespace
}  // namespace stillpoint::versions

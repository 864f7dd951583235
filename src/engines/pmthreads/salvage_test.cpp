// Salvages of damaged pools, against a model. The test flips bits by a seed, in page copies, version tables and delta log, and knows the
// whole pool. What the salvage calls sound must be as it was, byte for byte; where only page copies are damaged, every page whose copy in
// force is whole must be called sound; a lost page must be zero, and an older one a copy that an epoch wrote; and the engine's own recovery
// must take the pool.
//
// 300 pools by default, fewer under AddressSanitizer (support/cases.hpp); STILLPOINT_SALVAGES=10000 takes as many.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>

#include "engines/pmthreads/pmthreads_engine.hpp"
#include "support/cases.hpp"
#include "support/crashing_program.hpp"
#include "support/patched_medium.hpp"
#include "support/temporary_directory.hpp"
#include "support/work_afterwards.hpp"
#include "versions/salvage.hpp"

namespace stillpoint::pmthreads {
namespace {

using testing::PatchedFile;
using testing::PatchedMedium;
using Bytes = std::vector<std::byte>;
using versions::RecoveredImage;

constexpr std::uint64_t first_seed = 20'261'127;

std::uint64_t pools_to_salvage()
{
    const char* const wish = std::getenv("STILLPOINT_SALVAGES");
    return wish != nullptr ? std::strtoull(wish, nullptr, 10) : test::cases(300, 6);
}

/// Many pages written whole, others by lines, in four epochs.
int work_for_salvage(unsigned stage)
{
    sp_fase_begin();
    auto* const bytes = static_cast<std::byte*>(sp_root("bytes", 120 * page_bytes));
    for (std::size_t page = stage % 3; page < 120; page += 3) {
        std::memset(bytes + page * page_bytes, static_cast<int>(stage + page), page_bytes);
    }
    for (std::size_t page = 1; page < 120; page += 7) {
        bytes[page * page_bytes + stage * 64] = std::byte{static_cast<unsigned char>(stage)};
    }
    sp_fase_end();
    return sp_checkpoint();
}

Bytes pool_of_program()
{
    const test::TemporaryDirectory directory;
    const std::string path = directory.file("test.pool");
    const auto body = [] {
        for (unsigned stage = 1; stage < 6; ++stage) {
            if (work_for_salvage(stage) != SP_OK) {
                return 1;
            }
        }
        return 0;
    };
    EXPECT_EQ(test::run_with_pool(path, "pool_size_mb=4 pool_max_mb=10 interval_ms=3600000 durability=process medium=file", body), 0);
    std::ifstream file(path, std::ios::binary);
    Bytes bytes(std::filesystem::file_size(path));
    file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return bytes;
}

class Salvages : public ::testing::Test {
protected:
    void SetUp() override
    {
        const auto program = std::make_shared<PatchedFile>(pool_of_program());
        ASSERT_EQ(versions::work_and_restart(program, driver().format, false), "");
        file_ = std::make_shared<PatchedFile>(program->bytes());
        auto opened = versions::open_image(file_, driver().format, false);
        ASSERT_TRUE(opened) << opened.error().text();
        file_->undo();
        for (const auto& [page, bytes] : (*opened)->image.pages) {
            whole_[page] = bytes;
        }
        slots_ = (*opened)->image.slots;
        slots_.resize((*opened)->pool.facts().image_bytes / page_bytes);
        const auto segments = (*opened)->pool.segments();
        segments_.assign(segments.begin(), segments.end());
        for (std::uint64_t page = 0; page < file_->bytes().size() / page_bytes; ++page) {
            const auto begin = file_->bytes().begin() + static_cast<std::ptrdiff_t>(page * page_bytes);
            if (is_data_page(page)) {
                copies_.emplace(begin, begin + page_bytes);
            }
        }
        ASSERT_GT(whole_.size(), 100U);
        ASSERT_GT((*opened)->deltas->log.live_batches(), 0U);
    }

    /// The pages of the file that the program's state lies in.
    std::vector<std::uint64_t> targets() const
    {
        std::vector<std::uint64_t> pages;
        for (const Segment& segment : segments_) {
            for (std::uint64_t i = 0; i < versions::table_file_pages(segment.image_pages); ++i) {
                pages.push_back(segment.first_file_page + i);
            }
            for (std::uint64_t i = 0; i < 40; ++i) {
                pages.push_back(versions::first_delta_page(segment) + i);
            }
        }
        for (const auto& slot : slots_) {
            if (slot.epoch != 0) {
                pages.push_back(slot.location);
            }
        }
        return pages;
    }

    /// Flips a bit in some of them, mostly in one kind. Returns the damaged pages.
    std::set<std::uint64_t> damage(std::mt19937_64& random)
    {
        static const std::vector<std::uint64_t> all = targets();
        std::set<std::uint64_t> damaged;
        const std::uint64_t tables = versions::table_file_pages(segments_.front().image_pages) + 40;
        const bool in_tables = random() % 3 == 0;
        for (std::uint64_t left = 1 + random() % 6; left != 0; --left) {
            const std::uint64_t page = in_tables ? all[random() % tables] : all[random() % all.size()];
            if (damaged.insert(page).second) {
                file_->flip_bit(page * page_bytes * 8 + random() % (page_bytes * 8));
            }
        }
        return damaged;
    }

    /// Whether the copy that is in force is whole, and only page copies are damaged: then it must be kept.
    bool must_be_sound(std::uint64_t page, const std::set<std::uint64_t>& damaged) const
    {
        const bool only_copies = std::all_of(damaged.begin(), damaged.end(), [this](std::uint64_t one) { return is_data_page(one); });
        return only_copies && slots_[page].epoch != 0 && !damaged.contains(slots_[page].location);
    }
    bool is_data_page(std::uint64_t page) const
    {
        return std::any_of(segments_.begin(), segments_.end(), [page](const Segment& segment) {
            const std::uint64_t first = versions::first_data_page(segment);
            return page >= first && page < first + 2 * segment.image_pages;
        });
    }

    void judge(const SalvageReport& report, const std::set<std::uint64_t>& damaged)
    {
        auto opened = versions::open_image(file_, driver().format, false);
        ASSERT_TRUE(opened) << opened.error().text();
        std::map<std::uint64_t, std::uint64_t> unsound;
        for (const UnsoundPages& run : report.unsound) {
            for (std::uint64_t page = run.first_page; page < run.first_page + run.pages; ++page) {
                unsound[page] = run.epoch;
            }
        }
        std::map<std::uint64_t, Bytes> made;
        for (const auto& [page, bytes] : (*opened)->image.pages) {
            made[page] = bytes;
        }
        const Bytes zeroes(page_bytes);
        for (std::uint64_t page = 0; page < slots_.size(); ++page) {
            const Bytes& now = made.contains(page) ? made[page] : zeroes;
            const Bytes& before = whole_.contains(page) ? whole_[page] : zeroes;
            const auto listed = unsound.find(page);
            if (listed == unsound.end()) {
                EXPECT_EQ(now == before, true) << "page " << page << " is called sound, and is not as it was";
                continue;
            }
            EXPECT_FALSE(must_be_sound(page, damaged)) << "page " << page << " was sound, and is given up";
            EXPECT_TRUE(listed->second == 0 || copies_.contains(now)) << "page " << page << " has bytes that no epoch left";
            const bool is_lost = now == zeroes && !made.contains(page);
            const bool may_be_made_again = page == 0 && listed->second == 0;  // The image header.
            EXPECT_TRUE(may_be_made_again || is_lost == (listed->second == 0)) << "page " << page;
        }
    }

    std::shared_ptr<PatchedFile> file_;
    std::map<std::uint64_t, Bytes> whole_;
    std::set<Bytes> copies_;  ///< every page copy of the whole pool, older ones too
    std::vector<versions::VersionSlot> slots_;
    std::vector<Segment> segments_;
};

TEST_F(Salvages, a_whole_pool_stays_as_it_is)
{
    auto pool = Pool::open(std::make_unique<PatchedMedium>(file_), driver().format, false, true);
    ASSERT_TRUE(pool);
    const auto report = driver().salvage(*pool);
    ASSERT_TRUE(report) << report.error().text();
    EXPECT_EQ(report->pages_sound, whole_.size());
    EXPECT_TRUE(report->unsound.empty());
    judge(*report, {});
}

TEST_F(Salvages, of_damaged_pools_keep_what_is_sound_and_nothing_else)
{
    std::uint64_t sound = 0;
    std::uint64_t older = 0;
    std::uint64_t lost = 0;
    const std::uint64_t pools = pools_to_salvage();
    for (std::uint64_t i = 0; i < pools && !HasFailure(); ++i) {
        SCOPED_TRACE(::testing::Message() << "seed " << first_seed + i);
        std::mt19937_64 random(first_seed + i);
        const auto damaged = damage(random);
        auto pool = Pool::open(std::make_unique<PatchedMedium>(file_), driver().format, false, true);
        ASSERT_TRUE(pool) << pool.error().text();
        const auto report = driver().salvage(*pool);
        ASSERT_TRUE(report) << report.error().text();
        judge(*report, damaged);
        sound += report->pages_sound;
        older += report->pages_older;
        lost += report->pages_lost;
        file_->undo();
    }
    std::printf("salvages: %llu pools: %llu pages sound, %llu older, %llu lost\n", static_cast<unsigned long long>(pools),
                static_cast<unsigned long long>(sound), static_cast<unsigned long long>(older), static_cast<unsigned long long>(lost));
    EXPECT_GT(older, 0U);
    EXPECT_GT(lost, 0U);
}

}  // namespace
}  // namespace stillpoint::pmthreads

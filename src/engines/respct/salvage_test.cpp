// Salvages of damaged pools, against a model: the tables before the heap, of which the test knows the newest state and every copy in
// the file.
//   - A page that is not listed is as the newest epoch left it.
//   - One that is listed as older has the bytes of a copy that an epoch left; one that is lost is zero.
//   - Where no record of copies is damaged, a page whose newest copy is whole is not listed. One damaged record costs nothing but its page.
//   - Everything after the tables stays as the file has it, and a start takes the tables of what was made.
//
// 300 pools by default, fewer under AddressSanitizer (support/cases.hpp); STILLPOINT_SALVAGES=10000 takes as many.

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "engines/respct/file_place.hpp"
#include "engines/respct/recovery.hpp"
#include "engines/respct/respct_engine.hpp"
#include "engines/respct/salvage.hpp"
#include "engines/respct/table_copies.hpp"
#include "pool/commit_record.hpp"
#include "stillpoint/stillpoint.h"
#include "support/cases.hpp"
#include "support/crashing_program.hpp"
#include "support/patched_medium.hpp"
#include "support/temporary_directory.hpp"

namespace stillpoint::respct {
namespace {

using stillpoint::testing::PatchedFile;
using stillpoint::testing::PatchedMedium;
using Bytes = std::vector<std::byte>;

constexpr std::uint64_t first_seed = 20'261'128;

std::uint64_t pools_to_salvage()
{
    const char* const wish = std::getenv("STILLPOINT_SALVAGES");
    return wish != nullptr ? std::strtoull(wish, nullptr, 10) : test::cases(300, 6);
}

/// Names in several pages of the directory, some of them in several epochs.
int work_for_salvage()
{
    for (int stage = 0; stage < 4; ++stage) {
        for (int i = 0; i < 30; ++i) {
            if (sp_root(("name" + std::to_string(stage) + "-" + std::to_string(i)).c_str(), 64) == nullptr) {
                return 1;
            }
        }
        if (sp_checkpoint() != SP_OK) {
            return 2;
        }
    }
    return 0;
}

class RespctSalvages : public ::testing::Test {
protected:
    void SetUp() override
    {
        const test::TemporaryDirectory directory;
        const std::string path = directory.file("test.pool");
        ASSERT_EQ(test::run_with_pool(path, "engine=respct pool_size_mb=4 pool_max_mb=8 durability=process interval_ms=3600000 medium=file",
                                      work_for_salvage),
                  0);
        std::ifstream stream(path, std::ios::binary);
        Bytes bytes(std::filesystem::file_size(path));
        stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        file_ = std::make_shared<PatchedFile>(std::move(bytes));
        const auto pool = open();
        ASSERT_TRUE(pool) << pool.error().text();
        geometry_ = geometry_of(pool->facts());
        whole_ = tables_of(*pool);
        for (std::uint64_t page = 0; page < geometry_.table_pages; ++page) {
            CopyRecord record{};
            std::memcpy(&record, file_->bytes().data() + place_of_record(*pool, page), sizeof record);
            newest_.push_back(record.epoch[1] > record.epoch[0] ? 1 : 0);
            for (std::size_t copy = 0; copy < 2; ++copy) {
                places_.push_back(file_offset_of(*pool, page + (copy == 1 ? geometry_.copies_offset / page_bytes : 0)));
                if (record.epoch[copy] != 0) {
                    used_.emplace_back(page, copy);
                    const auto begin = file_->bytes().begin() + static_cast<std::ptrdiff_t>(places_.back());
                    copies_.emplace(begin, begin + page_bytes);
                }
            }
            records_.push_back(place_of_record(*pool, page));
        }
        heap_ = file_offset_of(*pool, geometry_.heap_offset / page_bytes);
        ASSERT_GT(used_.size(), 8U);
    }
    [[nodiscard]] Result<Pool> open(bool read_only = true) const
    {
        return Pool::open(std::make_unique<PatchedMedium>(file_), driver().format, read_only, true);
    }
    [[nodiscard]] std::uint64_t place_of_record(const Pool& pool, std::uint64_t page) const
    {
        const std::uint64_t at = geometry_.copy_records_offset + page * sizeof(CopyRecord);
        return file_offset_of(pool, at / page_bytes) + at % page_bytes;
    }

    /// The pages of the tables as a start finds them, which takes them.
    std::vector<Bytes> tables_of(const Pool& pool) const
    {
        const auto record = load_commit_record(pool);
        EXPECT_TRUE(record && *record);
        Bytes image(geometry_.table_pages * page_bytes);
        TableCopies copies;
        const auto loaded = copies.load(pool, geometry_, {(*record)->epoch, (*record)->table_digest}, image.data());
        EXPECT_TRUE(loaded) << loaded.error().text();
        std::vector<Bytes> tables;
        for (auto begin = image.begin(); begin != image.end(); begin += page_bytes) {
            tables.emplace_back(begin, begin + page_bytes);
        }
        return tables;
    }

    struct Damage {
        std::set<std::pair<std::uint64_t, std::size_t>> copies;  ///< page and copy
        std::set<std::uint64_t> records;  ///< of that page
    };
    Damage damage(std::mt19937_64& random)
    {
        Damage done;
        const bool has_records = random() % 2 == 0;
        for (std::uint64_t left = 1 + random() % 4; left != 0; --left) {
            const auto [page, copy] = used_[random() % used_.size()];
            if (has_records && random() % 2 == 0 && done.records.insert(page).second) {
                file_->flip_bit(records_[page] * 8 + random() % (4 * 64));
            } else if (random() % 8 == 0) {
                file_->flip_bit((heap_ + random() % (64 * page_bytes)) * 8);
            } else if (done.copies.insert({page, copy}).second) {
                file_->flip_bit(places_[2 * page + copy] * 8 + random() % (8 * page_bytes));
            }
        }
        return done;
    }

    void judge(const SalvageReport& report, const Damage& damaged)
    {
        const auto pool = open();
        ASSERT_TRUE(pool) << pool.error().text();
        const std::vector<Bytes> now = tables_of(*pool);
        std::map<std::uint64_t, std::uint64_t> listed;
        for (const UnsoundPages& run : report.unsound) {
            for (std::uint64_t page = run.first_page; page < run.first_page + run.pages; ++page) {
                listed[page] = run.epoch;
            }
        }
        EXPECT_EQ(report.pages_older + report.pages_lost, listed.size());
        ASSERT_EQ(now.size(), whole_.size());
        const Bytes zeroes(page_bytes);
        for (std::uint64_t page = 0; page < now.size(); ++page) {
            const auto found = listed.find(page);
            if (found == listed.end()) {
                EXPECT_TRUE(now[page] == whole_[page]) << "page " << page << " is called sound, and is not as it was";
                continue;
            }
            const bool newest_is_whole = !damaged.copies.contains({page, newest_[page]});
            EXPECT_FALSE(damaged.records.empty() && newest_is_whole) << "page " << page << " was sound, and is given up";
            EXPECT_FALSE(damaged.records.size() == 1 && damaged.copies.empty() && !damaged.records.contains(page))
                << "the record of another page was damaged, and page " << page << " is given up";
            EXPECT_TRUE(found->second == 0 ? now[page] == zeroes : copies_.contains(now[page])) << "page " << page;
        }
    }

    std::shared_ptr<PatchedFile> file_;
    ImageGeometry geometry_{};
    std::vector<Bytes> whole_;
    std::set<Bytes> copies_;
    std::vector<std::size_t> newest_;  ///< copy, by page
    std::vector<std::uint64_t> places_;  ///< of both copies of each page, in the file
    std::vector<std::uint64_t> records_;  ///< by page, in the file
    std::vector<std::pair<std::uint64_t, std::size_t>> used_;  ///< page and copy
    std::uint64_t heap_ = 0;
};

TEST_F(RespctSalvages, AWholePoolStaysAsItIs)
{
    auto pool = open(false);
    ASSERT_TRUE(pool);
    const auto report = salvage_pool(*pool);
    ASSERT_TRUE(report) << report.error().text();
    EXPECT_TRUE(report->unsound.empty());
    EXPECT_TRUE(report->tables_proved);
    EXPECT_EQ(report->pages_unproved, (pool->facts().image_bytes - geometry_.heap_offset) / page_bytes);
    judge(*report, {});
    file_->undo();
}

TEST_F(RespctSalvages, OfDamagedPoolsKeepWhatIsSoundAndNothingElse)
{
    std::uint64_t sound = 0;
    std::uint64_t older = 0;
    std::uint64_t lost = 0;
    std::uint64_t unproved_tables = 0;
    const std::uint64_t pools = pools_to_salvage();
    for (std::uint64_t i = 0; i < pools && !HasFailure(); ++i) {
        SCOPED_TRACE(::testing::Message() << "seed " << first_seed + i);
        std::mt19937_64 random(first_seed + i);
        const Damage damaged = damage(random);
        const Bytes heap(file_->bytes().begin() + static_cast<std::ptrdiff_t>(heap_), file_->bytes().end());
        auto pool = open(false);
        ASSERT_TRUE(pool) << pool.error().text();
        const auto report = salvage_pool(*pool);
        ASSERT_TRUE(report) << report.error().text();
        EXPECT_TRUE(std::equal(heap.begin(), heap.end(), file_->bytes().begin() + static_cast<std::ptrdiff_t>(heap_)));
        judge(*report, damaged);
        sound += report->pages_sound;
        older += report->pages_older;
        lost += report->pages_lost;
        unproved_tables += report->tables_proved ? 0U : 1U;
        file_->undo();
    }
    std::printf("salvages: %llu pools: %llu pages sound, %llu older, %llu lost; the tables of %llu are not proved\n",
                static_cast<unsigned long long>(pools), static_cast<unsigned long long>(sound), static_cast<unsigned long long>(older),
                static_cast<unsigned long long>(lost), static_cast<unsigned long long>(unproved_tables));
    EXPECT_GT(older, 0U);
    EXPECT_GT(lost, 0U);
}

}  // namespace
}  // namespace stillpoint::respct

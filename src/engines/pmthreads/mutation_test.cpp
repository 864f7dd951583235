// Mutations: one damage after the other in every structure of a pool that a program left, each recovered as a restart
// would recover it. Each must be refused with a message, or give exactly the state that the whole pool gives; one damage to a
// superblock, a commit record or a version table is never refused, since there is a second one. Then the run continues, on block
// media and on byte-addressable ones: it writes, makes two epochs durable, and a restart must find all of it.
//
//   every bit of both superblocks, all commit records, the version tables and the page copies in force;
//   every sector of them lost, overwritten or unreadable; every page unreadable, and replaced by what it held earlier; every
//   two pages of one structure exchanged; two bits at a time, seeded.
//
// A sample by default, bounded by time; STILLPOINT_MUTATIONS=all (`make mutations`) takes all of them.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <malloc.h>
#include <random>
#include <span>
#include <string>
#include <sys/prctl.h>
#include <vector>

#include "pool/commit_record.hpp"
#include "support/cases.hpp"
#include "support/crashing_program.hpp"
#include "versions/offline.hpp"
#include "engines/pmthreads/pmthreads_engine.hpp"
#include "engines/pmthreads/pmthreads_layout.hpp"
#include "support/work_afterwards.hpp"
#include "support/temporary_directory.hpp"
#include "support/patched_medium.hpp"

namespace stillpoint::pmthreads {
namespace {

using testing::PatchedFile;
using testing::PatchedMedium;
using Bytes = std::vector<std::byte>;

constexpr unsigned stages = 4;
constexpr std::uint64_t engine_area_page = 2;
constexpr std::uint64_t first_image_pages = 4 * mib / page_bytes;

bool take_all()
{
    const char* const wish = std::getenv("STILLPOINT_MUTATIONS");
    return wish != nullptr && std::string_view(wish) == "all";
}

// ---- The program whose pool is damaged. ----

/// One epoch's work: fields of many pages, blocks of many sizes, handles that come and go, growth in the third.
int work(unsigned stage)
{
    sp_fase_begin();
    auto* words = static_cast<std::uint64_t*>(sp_root("words", 8 * page_bytes));
    for (std::size_t i = stage; i < 8 * page_bytes / sizeof *words; i += 500) {
        words[i] = stage * 1'000'000 + i;
    }
    for (std::size_t bytes = 16; bytes < 20'000; bytes *= 4) {
        auto* const block = static_cast<std::byte*>(sp_malloc(bytes));
        std::memset(block, static_cast<int>(stage), std::min<std::size_t>(bytes, 300));
        if (bytes % 2 == stage % 2) {
            sp_free(block);
        }
    }
    const std::string handle = "handle " + std::to_string(stage);
    if (sp_root(handle.c_str(), 100) == nullptr) {
        return 1;
    }
    if (stage == 3 && sp_malloc(4 * mib) == nullptr) {
        return 1;
    }
    sp_fase_end();
    return sp_checkpoint();
}

struct Snapshots {
    std::array<Bytes, stages + 1> files;  ///< after each checkpoint, and after the end
};

Bytes bytes_of(const std::string& path)
{
    std::ifstream file(path, std::ios::binary);
    Bytes bytes(std::filesystem::file_size(path));
    file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return bytes;
}

Snapshots run_the_program()
{
    const test::TemporaryDirectory directory;
    const std::string pool = directory.file("test.pool");
    const auto copy = [&](unsigned stage) { return directory.file("after." + std::to_string(stage)); };
    const int outcome = test::run_with_pool(pool, "pool_size_mb=4 pool_max_mb=10 interval_ms=3600000 durability=process medium=file", [&] {
        for (unsigned stage = 0; stage < stages; ++stage) {
            if (work(stage) != SP_OK) {
                return 1;
            }
            std::filesystem::copy_file(pool, copy(stage));
        }
        return 0;
    });
    EXPECT_EQ(outcome, 0);
    Snapshots snapshots;
    for (unsigned stage = 0; stage < stages; ++stage) {
        snapshots.files[stage] = bytes_of(copy(stage));
    }
    snapshots.files[stages] = bytes_of(pool);
    return snapshots;
}

using State = versions::RecoveredImage;

/// As a start of the program would, up to its first instruction. Page copies are not read where they are those of `known`.
Result<State> recover(const std::shared_ptr<PatchedFile>& file, const State* known = nullptr)
{
    auto opened = versions::open_image(file, driver().format, false, known);
    if (!opened) {
        return pass_on(opened.error());
    }
    return std::move((*opened)->image);
}

// ---- The damages. ----

struct Figures {
    std::uint64_t images = 0;
    std::uint64_t refused = 0;
    std::uint64_t repaired = 0;
    std::uint64_t harmless = 0;
    std::uint64_t continued = 0;  ///< work that went on after it
    std::uint64_t wrong = 0;
};

/// File pages that belong together.
struct Structure {
    const char* name;
    std::vector<std::uint64_t> pages;
};

class Mutations : public ::testing::Test {
protected:
    static void SetUpTestSuite()
    {
        snapshots_ = new Snapshots(run_the_program());
        // Recovery maps its tables again each time: huge pages would have to be zeroed each time.
        prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
        // Copies of images come and go: what was freed stays with the process.
        mallopt(M_MMAP_THRESHOLD, 64 << 20);
        mallopt(M_TRIM_THRESHOLD, 512 << 20);
    }
    static void TearDownTestSuite()
    {
        prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
        delete std::exchange(snapshots_, nullptr);
    }

    /// The pool that is damaged, and what it gives undamaged.
    void use(Bytes content)
    {
        file_ = std::make_shared<PatchedFile>(std::move(content));
        auto state = recover(file_);
        file_->undo();
        ASSERT_TRUE(state) << state.error().text();
        oracle_ = *state;
        ASSERT_GT(oracle_.pages.size(), 20U);
        list_structures();
    }

    void list_structures()
    {
        structures_ = {{"superblocks", {0, 1}}, {"commit records", {2, 3, 4, 5}}, {"version tables", {}}, {"page copies", {}}};
        auto pool = Pool::open(std::make_unique<PatchedMedium>(file_), driver().format, true);
        ASSERT_TRUE(pool);
        for (const Segment& segment : pool->segments()) {
            for (std::uint64_t page = 0; page < versions::table_file_pages(segment.image_pages); ++page) {
                structures_[2].pages.push_back(segment.first_file_page + page);
            }
        }
        ASSERT_GT(pool->segments().size(), 1U);
        structures_[3].pages.assign(oracle_.locations.begin(), oracle_.locations.end());
    }

    [[nodiscard]] Bytes page_at(std::uint64_t page) const
    {
        const auto begin = file_->bytes().begin() + static_cast<std::ptrdiff_t>(page * page_bytes);
        return {begin, begin + page_bytes};
    }

    /// Recovers what the file holds now, judges it, and undoes the damage. `what` is told of a wrong one.
    template <class... Numbers>
    void judge(Figures& figures, const Structure& structure, const char* what, Numbers... numbers)
    {
        ++figures.images;
        const bool copies_are_whole = damages_ == 1 && &structure != &structures_[3];
        const auto state = recover(file_, copies_are_whole ? &oracle_ : nullptr);
        if (!state) {
            ++figures.refused;
            EXPECT_FALSE(state.error().text().empty());
            if (copies_are_whole) {
                ++figures.wrong;
                ADD_FAILURE() << structure.name << ": " << what << ((" " + std::to_string(numbers)) + ...) << ": " << state.error().text();
            }
        } else if (!state->same_as(oracle_)) {
            ++figures.wrong;
            ADD_FAILURE() << structure.name << ": " << what << ((" " + std::to_string(numbers)) + ...) << ": taken for epoch "
                          << state->report.epoch << " instead of " << oracle_.report.epoch;
        } else if (state->facts.superblock_repaired || twin_served(structure)) {
            ++figures.repaired;
        } else {
            ++figures.harmless;
        }
        if (state) {
            go_on(figures, structure, what, numbers...);
        }
        file_->undo();
    }

    /// On both kinds of media, in a sample on one of them: damage may lie where only later work looks.
    template <class... Numbers>
    void go_on(Figures& figures, const Structure& structure, const char* what, Numbers... numbers)
    {
        if (figures.images % work_after_each_ != 0) {
            return;
        }
        const std::size_t damaged = file_->patches();
        for (const bool mapped : {false, true}) {
            if (take_all() || mapped == (figures.images % 2 == 0)) {
                ++figures.continued;
                file_->undo_to(damaged);
                const std::string problem = versions::work_and_restart(file_, driver().format, mapped);
                figures.wrong += problem.empty() ? 0U : 1U;
                EXPECT_EQ(problem, "") << structure.name << ": " << what << ((" " + std::to_string(numbers)) + ...);
            }
        }
    }

    /// A commit record of the pair in force that does not hold: the other of the pair was used.
    [[nodiscard]] bool twin_served(const Structure& structure) const
    {
        if (&structure != &structures_[1]) {
            return false;
        }
        const std::uint64_t pair = (engine_area_page + 2 * (oracle_.report.epoch % 2)) * page_bytes;
        const std::byte* const bytes = file_->bytes().data() + pair;
        return std::memcmp(bytes, bytes + page_bytes, sizeof(CommitRecord)) != 0;
    }

    /// Calls `damage(number)` for each number below `count`: all of them, or a seeded sample that ends with its share of the time.
    template <class Damage>
    void for_each(std::uint64_t count, double share, Damage&& damage)
    {
        using Clock = std::chrono::steady_clock;
        const auto deadline = Clock::now() + std::chrono::duration<double>(share * (test::takes_few_cases() ? 0.4 : 2.0));
        if (take_all()) {
            for (std::uint64_t number = 0; number < count; ++number) {
                damage(number);
            }
            return;
        }
        // Never less than a few, however slow the machine is.
        std::mt19937_64 random(count);
        for (std::uint64_t i = 0; i < std::min<std::uint64_t>(count, 20'000) && (i < 20 || Clock::now() < deadline); ++i) {
            damage(random() % count);
        }
    }

    static void report(const char* what, const Figures& figures)
    {
        std::printf("mutations, %s: %llu images: %llu refused, %llu repaired, %llu harmless, %llu wrong; work went on after %llu\n", what,
                    static_cast<unsigned long long>(figures.images), static_cast<unsigned long long>(figures.refused),
                    static_cast<unsigned long long>(figures.repaired), static_cast<unsigned long long>(figures.harmless),
                    static_cast<unsigned long long>(figures.wrong), static_cast<unsigned long long>(figures.continued));
        EXPECT_EQ(figures.wrong, 0U);
        EXPECT_GT(figures.images, 0U);
    }

    /// How many damages a check of what the file holds now tells.
    [[nodiscard]] std::uint64_t damages_found()
    {
        struct Counting final : Findings {
            void tell(const Failure&, bool) override {}
        } counting;
        const auto pool = Pool::open(std::make_unique<PatchedMedium>(file_), driver().format, true);
        return pool && versions::check_pool(*pool, true, &counting, nullptr, nullptr, nullptr) ? counting.damages() : 0;
    }

    /// Each copy has its own checksum: so a bit is flipped in all of them at once, and a check must tell of each. A start, which ends
    /// with the first, gets one of them.
    void flip_every_bit_of_copies(const char* what)
    {
        const Structure& copies = structures_[3];
        const std::uint64_t bits_in_page = page_bytes * 8;
        Figures here;
        for_each(bits_in_page, 0.25, [&](std::uint64_t bit) {
            for (const std::uint64_t page : copies.pages) {
                file_->flip_bit(page * bits_in_page + bit);
            }
            const bool all_found = damages_found() == copies.pages.size();
            here.wrong += all_found ? 0U : 1U;  // report() fails the test.
            here.refused += copies.pages.size() - 1;
            here.images += copies.pages.size() - 1;
            file_->undo();
            const std::uint64_t one = copies.pages[bit % copies.pages.size()] * bits_in_page + bit;
            file_->flip_bit(one);
            judge(here, copies, "bit", one);
        });
        report((std::string(what) + ", bits of page copies").c_str(), here);
    }

    void flip_every_bit(const char* what)
    {
        work_after_each_ = take_all() ? 16 : 1;
        for (const Structure& structure : std::span(structures_).first(3)) {
            Figures here;
            const std::uint64_t bits_in_page = page_bytes * 8;
            for_each(structure.pages.size() * bits_in_page, 0.25, [&](std::uint64_t number) {
                const std::uint64_t bit = structure.pages[number / bits_in_page] * bits_in_page + number % bits_in_page;
                file_->flip_bit(bit);
                judge(here, structure, "bit", bit);
            });
            report((std::string(what) + ", bits of " + structure.name).c_str(), here);
        }
    }

    static Snapshots* snapshots_;
    std::shared_ptr<PatchedFile> file_;
    unsigned work_after_each_ = 1;  ///< of so many accepted images one: work takes longer than recovery
    unsigned damages_ = 1;  ///< at a time: what there are two of survives one, and is not refused
    State oracle_;
    std::vector<Structure> structures_;
};

Snapshots* Mutations::snapshots_ = nullptr;

/// The last snapshot but one, with the commit records of the one before: a crash before the commit.
Bytes crashed_before_its_commit(const Snapshots& snapshots)
{
    Bytes bytes = snapshots.files[stages - 1];
    const Bytes& before = snapshots.files[stages - 2];
    std::copy_n(before.begin() + engine_area_page * page_bytes, engine_area_pages * page_bytes,
                bytes.begin() + engine_area_page * page_bytes);
    return bytes;
}

TEST_F(Mutations, OfOneBitAreRefusedRepairedOrHarmless)
{
    use(snapshots_->files[stages]);
    ASSERT_TRUE(oracle_.report.clean);
    flip_every_bit("ended pool");
    flip_every_bit_of_copies("ended pool");
}

TEST_F(Mutations, OfOneBitAfterACrashAreRefusedRepairedOrHarmless)
{
    use(crashed_before_its_commit(*snapshots_));
    ASSERT_FALSE(oracle_.report.clean);
    ASSERT_GT(oracle_.report.pages_rolled_back, 0U);
    flip_every_bit("crashed pool");
}

/// In each of the four copies of a table page, the header and the slots of pages that have a copy; in a short run of a few.
TEST_F(Mutations, OfEveryBitOfASlotInEveryPlaceLeaveAPoolThatGoesOn)
{
    use(snapshots_->files[stages]);
    std::vector<std::uint64_t> places = {0};  // In the page: its header, and slots.
    for (const auto& [page, bytes] : oracle_.pages) {
        if (page < versions::slots_per_table_page && (places.size() < 3 || take_all())) {
            places.push_back(offsetof(versions::TablePage, slots) + page * sizeof(versions::VersionSlot));
        }
    }
    ASSERT_GE(places.size(), 3U);
    const std::uint64_t second_place = versions::table_copies * versions::table_pages_for(first_image_pages);
    const std::uint64_t step = take_all() ? 1 : test::case_step(3, 13);
    Figures figures;
    for (const std::uint64_t copy : {std::uint64_t{0}, std::uint64_t{1}, second_place, second_place + 1}) {
        for (const std::uint64_t place : places) {
            const std::uint64_t begin = (structures_[2].pages[copy] * page_bytes + place) * 8;
            for (std::uint64_t bit = begin; bit < begin + sizeof(versions::VersionSlot) * 8; bit += step) {
                file_->flip_bit(bit);
                judge(figures, structures_[2], "bit of a slot", bit);
            }
        }
    }
    report("slots", figures);
}

/// A sector, or a whole page, that the disk does not give back: every other byte is sound.
TEST_F(Mutations, ThatMakeASectorOrAPageUnreadableLoseNothingButAPageCopy)
{
    use(snapshots_->files[stages]);
    Figures figures;
    constexpr std::size_t sector = 512;
    for (const Structure& structure : structures_) {
        for_each(structure.pages.size() * 2, 0.25, [&](std::uint64_t number) {
            const std::uint64_t page = structure.pages[number / 2] * page_bytes;
            file_->make_unreadable(page, number % 2 == 0 ? sector : page_bytes);
            judge(figures, structure, "unreadable bytes", page);
        });
    }
    report("unreadable", figures);
}

TEST_F(Mutations, OfASectorAreRefusedRepairedOrHarmless)
{
    use(snapshots_->files[stages]);
    constexpr std::size_t sector = 512;
    constexpr std::size_t sectors = page_bytes / sector;
    Figures figures;
    for (const Structure& structure : structures_) {
        for_each(structure.pages.size() * sectors * 2, 0.25, [&](std::uint64_t number) {
            const Bytes garbage(sector, number % 2 == 0 ? std::byte{0} : std::byte{0xee});
            const std::uint64_t place = structure.pages[number / 2 / sectors] * page_bytes + number / 2 % sectors * sector;
            file_->patch(place, garbage.data(), sector);
            judge(figures, structure, "sector", place);
        });
    }
    report("sectors", figures);
}

TEST_F(Mutations, ThatPutOlderPagesBackAreRefusedRepairedOrHarmless)
{
    use(snapshots_->files[stages]);
    Figures figures;
    for (const Structure& structure : structures_) {
        for (unsigned stage = 0; stage < stages; ++stage) {
            const Bytes& older = snapshots_->files[stage];
            for (const std::uint64_t page : structure.pages) {
                const std::uint64_t offset = page * page_bytes;
                if (offset + page_bytes <= older.size() &&
                    std::memcmp(older.data() + offset, file_->bytes().data() + offset, page_bytes) != 0) {
                    file_->patch(offset, older.data() + offset, page_bytes);
                    judge(figures, structure, "page, stage", page, stage);
                }
            }
        }
    }
    report("stale pages", figures);
}

TEST_F(Mutations, ThatExchangePagesAreRefusedRepairedOrHarmless)
{
    use(snapshots_->files[stages]);
    Figures figures;
    for (const Structure& structure : structures_) {
        const std::uint64_t count = structure.pages.size();
        for_each(count * count, 0.25, [&](std::uint64_t number) {
            const std::uint64_t first = structure.pages[number / count];
            const std::uint64_t second = structure.pages[number % count];
            if (number / count >= number % count) {
                return;
            }
            const Bytes first_bytes = page_at(first);
            const Bytes second_bytes = page_at(second);
            file_->patch(first * page_bytes, second_bytes.data(), page_bytes);
            file_->patch(second * page_bytes, first_bytes.data(), page_bytes);
            judge(figures, structure, "pages", first, second);
        });
    }
    report("exchanged pages", figures);
}

/// But for the one pair of faults that docs/internals/format/pmthreads.md says goes unnoticed.
TEST_F(Mutations, OfTwoBitsAreRefusedRepairedOrHarmless)
{
    use(snapshots_->files[stages]);
    damages_ = 2;
    work_after_each_ = take_all() ? 16 : 1;
    const std::uint64_t pair = engine_area_page + 2 * (oracle_.report.epoch % 2);
    std::vector<std::uint64_t> pages;
    for (const Structure& structure : structures_) {
        pages.insert(pages.end(), structure.pages.begin(), structure.pages.end());
    }
    Figures figures;
    std::mt19937_64 random(7);
    for_each(200'000, 0.5, [&](std::uint64_t) {
        const std::uint64_t first = pages[random() % pages.size()];
        const std::uint64_t second = pages[random() % pages.size()];
        if (std::min(first, second) == pair && std::max(first, second) == pair + 1) {
            return;
        }
        // In the first bytes of a page, where most structures have what counts.
        const std::uint64_t bits = random() % 2 == 0 ? 704 : page_bytes * 8;
        file_->flip_bit(first * page_bytes * 8 + random() % bits);
        file_->flip_bit(second * page_bytes * 8 + random() % bits);
        judge(figures, structures_[3], "two bits of pages", first, second);
    });
    report("two bits", figures);
}

}  // namespace
}  // namespace stillpoint::pmthreads

// Several pools in one process (stillpoint.h, "Several pools").
//   1. Each has a heap, handles, objects, epochs and statistics of its own; none of them loses or moves anything because another one is
//      opened, closed or grows.
//   2. Each is found again, alone or beside the others, as it was when its last operation had returned: after a normal end, and after
//      a kill.
//   3. What cannot be open at once is refused with a reason, and nothing of it or of the others changes.

#include <array>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <memory_resource>
#include <random>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "stillpoint/durable.hpp"
#include "stillpoint/stillpoint.h"

namespace {

namespace durable = stillpoint::durable;
namespace pronto = stillpoint::pronto;

constexpr const char* small_pronto = "quiet engine=pronto durability=process pool_size_mb=16 pool_max_mb=64";
using Numbers = durable::unordered_map<std::uint64_t, std::uint64_t>;

/// 0: there is no such key.
std::uint64_t value_of(const Numbers& numbers, std::uint64_t key)
{
    const auto found = numbers.find(key);
    return found == numbers.end() ? 0 : found->second;
}

/// Pool files of one test, removed at its end, and whatever it left open.
class Pools : public testing::Test {
protected:
    void SetUp() override
    {
        folder_ = std::filesystem::temp_directory_path() / ("pools-" + std::to_string(getpid()));
        std::filesystem::create_directory(folder_);
    }
    void TearDown() override
    {
        EXPECT_EQ(sp_pool_use(nullptr, nullptr), SP_OK);
        for (sp_pool* const pool : opened_) {
            EXPECT_EQ(sp_pool_close(pool), SP_OK) << sp_last_error();
        }
        if (sp_pool_default() != nullptr) {
            EXPECT_EQ(sp_close(), SP_OK) << sp_last_error();
        }
        std::filesystem::remove_all(folder_);
    }
    [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }
    sp_pool* open(const std::string& name, const char* options = small_pronto)
    {
        sp_pool* const pool = sp_pool_open(path(name).c_str(), options);
        EXPECT_NE(pool, nullptr) << sp_last_error();
        if (pool != nullptr) {
            opened_.push_back(pool);
        }
        return pool;
    }
    void close(sp_pool* pool)
    {
        EXPECT_EQ(sp_pool_close(pool), SP_OK) << sp_last_error();
        std::erase(opened_, pool);
    }
    void open_default(const std::string& name, const char* options = small_pronto)
    {
        ASSERT_EQ(sp_open(path(name).c_str(), options), SP_OK) << sp_last_error();
    }

private:
    std::filesystem::path folder_;
    std::vector<sp_pool*> opened_;
};

void expect_refused(sp_pool* pool, const char* reason)
{
    EXPECT_EQ(pool, nullptr);
    EXPECT_NE(std::string(sp_last_error()).find(reason), std::string::npos) << sp_last_error();
}

TEST_F(Pools, HaveHeapsOfTheirOwnAndABlockFindsItsPool)
{
    open_default("default");
    sp_pool* const one = open("one");
    sp_pool* const other = open("other");
    const std::array<sp_pool*, 3> pools{sp_pool_default(), one, other};
    std::array<std::vector<void*>, 3> blocks;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < pools.size(); ++i) {
        threads.emplace_back([&, i] {
            for (std::size_t n = 0; n < 2000; ++n) {
                blocks[i].push_back(sp_pool_malloc(pools[i], 16 + n % 700));
            }
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    for (std::size_t i = 0; i < pools.size(); ++i) {
        sp_heap_statistics figures{};
        ASSERT_EQ(sp_pool_heap_stats(pools[i], &figures), SP_OK);
        EXPECT_EQ(figures.live_blocks, 2000U);
        for (void* const block : blocks[i]) {
            ASSERT_EQ(sp_pool_of(block), pools[i]);
        }
    }
    // Freed by another thread than the one that allocated, without saying from which pool.
    for (auto& of_pool : blocks) {
        for (void*& block : of_pool) {
            block = sp_realloc(block, 1000);
            ASSERT_NE(block, nullptr);
        }
    }
    for (std::size_t i = 0; i < pools.size(); ++i) {
        for (void* const block : blocks[i]) {
            ASSERT_EQ(sp_pool_of(block), pools[i]);
            sp_free(block);
        }
        sp_heap_statistics figures{};
        ASSERT_EQ(sp_pool_heap_stats(pools[i], &figures), SP_OK);
        EXPECT_EQ(figures.live_blocks, 0U);
    }
    EXPECT_EQ(sp_pool_of(&blocks), nullptr);
}

TEST_F(Pools, HaveHandlesOfTheirOwn)
{
    open_default("default");
    sp_pool* const one = open("one");
    void* const here = sp_root("same name", 64);
    void* const there = sp_pool_root(one, "same name", 128);
    ASSERT_NE(there, nullptr) << sp_last_error();
    EXPECT_NE(here, there);
    EXPECT_EQ(sp_root_find("same name", nullptr), here);
    EXPECT_EQ(sp_pool_root_find(one, "same name", nullptr), there);
    EXPECT_EQ(sp_pool_root_delete(one, "same name"), SP_OK);
    EXPECT_EQ(sp_root_find("same name", nullptr), here);
    EXPECT_EQ(sp_pool_root_find(one, "same name", nullptr), nullptr);
}

TEST_F(Pools, AreFoundAgainAsTheyWereEachAloneAndInAnyOrder)
{
    const std::vector<std::string> names{"a", "b", "c"};
    for (std::uint64_t round = 1; round <= 3; ++round) {
        std::vector<sp_pool*> pools;
        for (const std::string& name : names) {
            pools.push_back(open(name));
            EXPECT_EQ(sp_pool_start_kind(pools.back()), round == 1 ? SP_START_FRESH : SP_START_CLEAN);
        }
        for (std::size_t i = 0; i < pools.size(); ++i) {
            const pronto::pool_scope in(pools[i]);
            auto& numbers = pronto::get_object<Numbers>("numbers");
            EXPECT_EQ(numbers.size(), (round - 1) * 100);
            for (std::uint64_t n = 0; n < 100; ++n) {
                static_cast<void>(numbers.insert_or_assign(round * 1000 + n, i));
            }
            EXPECT_EQ(value_of(numbers, round * 1000), i);
        }
        close(pools[round % 3]);
        close(pools[(round + 1) % 3]);
        close(pools[(round + 2) % 3]);
    }
    open_default("b");
    EXPECT_EQ(pronto::get_object<Numbers>("numbers").size(), 300U);
}

TEST_F(Pools, AnOperationAllocatesInItsObjectsPoolWhateverTheThreadHasChosen)
{
    open_default("default");
    sp_pool* const one = open("one");
    Numbers* numbers = nullptr;
    {
        const pronto::pool_scope in(one);
        numbers = &pronto::get_object<Numbers>("numbers");
    }
    EXPECT_EQ(sp_pool_of(numbers), one);
    sp_heap_statistics here{};
    sp_heap_statistics there{};
    ASSERT_EQ(sp_heap_stats(&here), SP_OK);
    ASSERT_EQ(sp_pool_heap_stats(one, &there), SP_OK);
    for (std::uint64_t n = 0; n < 500; ++n) {
        static_cast<void>(numbers->insert_or_assign(n, n));
    }
    sp_heap_statistics here_after{};
    sp_heap_statistics there_after{};
    ASSERT_EQ(sp_heap_stats(&here_after), SP_OK);
    ASSERT_EQ(sp_pool_heap_stats(one, &there_after), SP_OK);
    EXPECT_EQ(here_after.live_blocks, here.live_blocks);
    EXPECT_GE(there_after.live_blocks, there.live_blocks + 500);
    sp_pool* before = one;
    EXPECT_EQ(sp_pool_use(nullptr, &before), SP_OK);
    EXPECT_EQ(before, nullptr);  // The operations have left no choice behind.
}

class Pages : public pronto::object<Pages> {
public:
    static constexpr char type_name[] = "Pages";
    static constexpr auto methods() { return pronto::methods(pronto::method<&Pages::add>("add")); }
    void add(const std::string& text)
    {
        run<&Pages::add>(text, [&] { pages_.emplace_back(text); });
    }
    [[nodiscard]] std::pmr::memory_resource* resource() const { return pages_.get_allocator().resource(); }
    [[nodiscard]] const std::pmr::string& last() const { return pages_.back(); }

private:
    std::pmr::vector<std::pmr::string> pages_{pronto::durable_resource()};
};

TEST_F(Pools, HaveEachAResourceForPmrContainers)
{
    open_default("default");
    sp_pool* const one = open("one");
    auto& here = pronto::get_object<Pages>("pages");
    const std::string text(100, 'x');
    Pages* there = nullptr;
    {
        const pronto::pool_scope in(one);
        there = &pronto::get_object<Pages>("pages");
    }
    here.add(text);
    there->add(text);
    here.add(text);
    EXPECT_EQ(sp_pool_of(here.resource()), sp_pool_default());
    EXPECT_EQ(sp_pool_of(there->resource()), one);
    EXPECT_EQ(sp_pool_of(here.last().data()), sp_pool_default());
    EXPECT_EQ(sp_pool_of(there->last().data()), one);
    EXPECT_THROW(const pronto::pool_scope in(reinterpret_cast<sp_pool*>(&here)), std::invalid_argument);
}

TEST_F(Pools, GoOnWhenAnotherOneIsClosed)
{
    open_default("default");
    sp_pool* const one = open("one");
    sp_pool* const other = open("other");
    auto& kept = [&]() -> Numbers& {
        const pronto::pool_scope in(one);
        return pronto::get_object<Numbers>("numbers");
    }();
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> done{0};
    std::thread worker([&] {
        for (std::uint64_t n = 0; !stop.load(); ++n) {
            static_cast<void>(kept.insert_or_assign(n % 1000, n));
            done.store(n);
        }
    });
    close(other);
    ASSERT_EQ(sp_close(), SP_OK) << sp_last_error();
    const std::uint64_t seen = done.load();
    sp_pool* const again = open("other");
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(sp_pool_checkpoint(one), SP_OK) << sp_last_error();
        EXPECT_EQ(sp_pool_checkpoint(again), SP_OK) << sp_last_error();
    }
    while (done.load() < seen + 1000) {
        std::this_thread::yield();
    }
    stop.store(true);
    worker.join();
    EXPECT_EQ(sp_pool_default(), nullptr);
}

TEST_F(Pools, HaveStatisticsOfTheirOwn)
{
    open_default("default");
    sp_pool* const one = open("one");
    std::uint64_t before = 0;
    std::uint64_t there_before = 0;
    ASSERT_EQ(sp_statistic("checkpoints", &before), SP_OK);
    ASSERT_EQ(sp_pool_statistic(one, "checkpoints", &there_before), SP_OK);
    for (int i = 0; i < 3; ++i) {
        ASSERT_EQ(sp_pool_checkpoint(one), SP_OK) << sp_last_error();
    }
    std::uint64_t here = 0;
    std::uint64_t there = 0;
    ASSERT_EQ(sp_statistic("checkpoints", &here), SP_OK);
    ASSERT_EQ(sp_pool_statistic(one, "checkpoints", &there), SP_OK);
    EXPECT_EQ(here, before);
    EXPECT_GE(there, there_before + 3);
}

TEST_F(Pools, ThatCannotBeOpenAtOnceAreRefusedWithTheReason)
{
    open_default("default");
    const std::string taken = path("default");
    expect_refused(sp_pool_open(taken.c_str(), small_pronto), "this process has this pool open already");
    expect_refused(sp_pool_open(path("locks").c_str(), "quiet engine=pmthreads durability=process"), "needs the process for itself");
    EXPECT_FALSE(std::filesystem::exists(path("locks")));
    ASSERT_EQ(sp_close(), SP_OK);
    open_default("second");
    expect_refused(sp_pool_open(taken.c_str(), small_pronto), "cannot be open at once");
    ASSERT_EQ(sp_close(), SP_OK);
    open_default("locks", "quiet engine=pmthreads durability=process pool_size_mb=16 pool_max_mb=64");
    expect_refused(sp_pool_open(path("one").c_str(), small_pronto), "pmthreads needs the process for itself");
    EXPECT_FALSE(std::filesystem::exists(path("one")));
    std::uint64_t epoch = sp_epoch();
    EXPECT_EQ(sp_checkpoint(), SP_OK) << sp_last_error();  // Locks of the default pool are counted as before.
    EXPECT_GT(sp_durable_epoch(), 0U);
    EXPECT_GE(sp_epoch(), epoch);
}

TEST_F(Pools, UpToTheMaximumCanBeOpen)
{
    std::vector<sp_pool*> pools;
    for (int i = 0; i < 15; ++i) {
        pools.push_back(open("pool" + std::to_string(i), "quiet engine=pronto durability=process pool_size_mb=8 pool_max_mb=8"));
    }
    expect_refused(sp_pool_open(path("one more").c_str(), small_pronto), "the maximum");
    EXPECT_FALSE(std::filesystem::exists(path("one more")));
    close(pools[7]);
    sp_pool* const late = open("late");
    EXPECT_NE(sp_pool_malloc(late, 100), nullptr);
}

TEST_F(Pools, CanBeOpenedAfterAnyNumberOfRefusedOpenings)
{
    close(open("sound"));
    std::filesystem::copy_file(path("sound"), path("cut"));
    std::filesystem::resize_file(path("cut"), 1 << 20);
    for (int i = 0; i < 40; ++i) {
        expect_refused(sp_pool_open(path("cut").c_str(), small_pronto), "cut");
        expect_refused(sp_pool_open(path("sound").c_str(), "quiet engine=pronto pool_max_mb=128"), "pool_max_mb");
    }
    EXPECT_EQ(sp_pool_start_kind(open("sound")), SP_START_CLEAN);
}

TEST_F(Pools, CloseWhileThreadsOfTheProgramEnd)
{
    sp_pool* const kept = open("kept");
    std::atomic<bool> stop{false};
    std::thread maker([&] {
        while (!stop.load()) {
            std::thread([&] { sp_free(sp_pool_malloc(kept, 100)); }).join();
        }
    });
    for (int i = 0; i < 20; ++i) {
        sp_pool* const pool = open("other");
        std::thread([&] { sp_free(sp_pool_malloc(pool, 100)); }).join();
        close(pool);
    }
    stop.store(true);
    maker.join();
}

TEST_F(Pools, AreClosedByTheEndOfTheProcessAsTheDefaultOneIs)
{
    const pid_t child = fork();
    if (child == 0) {
        sp_pool* const pool = sp_pool_open(path("one").c_str(), small_pronto);
        const bool made = pool != nullptr && sp_pool_root(pool, "root", 64) != nullptr;
        std::exit(made ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
    EXPECT_EQ(sp_pool_start_kind(open("one")), SP_START_CLEAN);
}

TEST_F(Pools, InAChildOfForkAreThePrivateCopiesOfTheParent)
{
    open_default("default");
    sp_pool* const one = open("one");
    auto* const number = static_cast<int*>(sp_pool_root(one, "number", sizeof(int)));
    const pid_t child = fork();
    if (child == 0) {
        *number = 7;
        const bool detached = sp_pool_checkpoint(one) == SP_E_DETACHED && sp_checkpoint() == SP_E_DETACHED;
        _exit(detached ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(*number, 0);
    EXPECT_EQ(sp_pool_checkpoint(one), SP_OK) << sp_last_error();
}

/// The numbers of operations that have returned, in memory that survives the worker.
struct Acknowledged {
    std::atomic<std::uint64_t> of_pool[2];
    std::atomic<std::uint64_t> works;  ///< not 0: the run has done operations
};

/// Two threads write ascending numbers into an object of each of two pools, and say which have returned.
[[noreturn]] void work_until_killed(const std::array<std::string, 2>& paths, const char* options, Acknowledged& acknowledged)
{
    std::array<sp_pool*, 2> pools{};
    std::array<Numbers*, 2> objects{};
    for (std::size_t i = 0; i < 2; ++i) {
        pools[i] = sp_pool_open(paths[i].c_str(), options);
        if (pools[i] == nullptr) {
            _exit(2);
        }
        const pronto::pool_scope in(pools[i]);
        objects[i] = &pronto::get_object<Numbers>("numbers");
    }
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < 2; ++i) {
        threads.emplace_back([&, i] {
            for (std::uint64_t n = acknowledged.of_pool[i].load() + 1;; ++n) {
                static_cast<void>(objects[i]->insert_or_assign(n % 64, n));
                acknowledged.of_pool[i].store(n);
                acknowledged.works.store(1);
            }
        });
    }
    for (std::size_t i = 0;; ++i) {
        static_cast<void>(sp_pool_checkpoint(pools[i % 2]));
        usleep(1000);
    }
}

/// The newest number in the object, and whether the 63 before it are there: a prefix of the operations.
std::uint64_t newest_of(Numbers& numbers)
{
    std::uint64_t newest = 0;
    for (std::uint64_t key = 0; key < 64; ++key) {
        newest = std::max(newest, value_of(numbers, key));
    }
    for (std::uint64_t n = newest > 63 ? newest - 63 : 1; n <= newest; ++n) {
        EXPECT_EQ(value_of(numbers, n % 64), n);
    }
    return newest;
}

class KilledPools : public Pools, public testing::WithParamInterface<const char*> {};

TEST_P(KilledPools, HaveEachEverythingThatWasAcknowledged)
{
    constexpr int kills = 12;
    const std::string options = std::string(small_pronto) + " " + GetParam();
    const std::array<std::string, 2> paths{path("one"), path("other")};
    auto* const acknowledged =
        static_cast<Acknowledged*>(mmap(nullptr, sizeof(Acknowledged), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(acknowledged, MAP_FAILED);
    std::minstd_rand random(7);
    for (int kill_number = 0; kill_number < kills; ++kill_number) {
        acknowledged->works.store(0);
        const pid_t child = fork();
        if (child == 0) {
            work_until_killed(paths, options.c_str(), *acknowledged);
        }
        // Every third kill may strike in the opening; the others wait for work, however slow the machine is.
        constexpr int patience_ms = 20'000;
        for (int ms = 0; kill_number % 3 != 0 && acknowledged->works.load() == 0 && ms < patience_ms; ++ms) {
            usleep(1000);
        }
        usleep(static_cast<useconds_t>(random() % 50'000));
        ASSERT_EQ(kill(child, SIGKILL), 0);
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        ASSERT_TRUE(WIFSIGNALED(status)) << status;
        for (std::size_t i = 0; i < 2; ++i) {
            if (!std::filesystem::exists(paths[i])) {
                EXPECT_EQ(acknowledged->of_pool[i].load(), 0U);
                continue;
            }
            sp_pool* const pool = open(i == 0 ? "one" : "other", options.c_str());
            ASSERT_NE(pool, nullptr);
            {
                const pronto::pool_scope in(pool);
                const std::uint64_t newest = newest_of(pronto::get_object<Numbers>("numbers"));
                EXPECT_GE(newest, acknowledged->of_pool[i].load());
                EXPECT_LE(newest, acknowledged->of_pool[i].load() + 1);
                acknowledged->of_pool[i].store(newest);
            }
            close(pool);
        }
    }
    EXPECT_GT(acknowledged->of_pool[0].load() + acknowledged->of_pool[1].load(), 0U);
    munmap(acknowledged, sizeof(Acknowledged));
}

INSTANTIATE_TEST_SUITE_P(Media, KilledPools, testing::Values("medium=file", "medium=memory"));

}  // namespace

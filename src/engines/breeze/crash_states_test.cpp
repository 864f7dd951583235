// Crashes of pools of lists, at fences of transactions, of reference counts and of recovery itself:
//   - The lists are as after exactly one transaction, not older than the last one that committed.
//   - Recovery may crash at any point, and be run again at another address, any number of times.
//   - Pointers are valid wherever the pool lies.
//   - Reference counts are exact after every crash; no object that can be reached is freed, no other one is kept.
//   - Canary: with one fence left out of the commit protocol these tests fail.

#include <gtest/gtest.h>

#include <optional>

#include "support/breeze_lists.hpp"
#include "support/cases.hpp"

namespace stillpoint::breeze::testing {
namespace {

using test::CrashMemory;
using Bytes = std::vector<std::byte>;

/// A crash, and the states of which the recovered one must be one.
struct Crash {
    Bytes content;
    Model before;
    Model after;
};

std::optional<std::string> judge(const Bytes& content, const Crash& crash, unsigned place_number)
{
    auto memory = std::make_shared<CrashMemory>(content);
    auto pool = open_memory(memory, place_number);
    if (!pool) {
        return pool.error().message;
    }
    const Model found = model_of(**pool);
    if (found != crash.before && found != crash.after) {
        return "the lists are as after no transaction";
    }
    if (auto complaint = complaint_of_counts(**pool, objects_in(found))) {
        return complaint;
    }
    if (model_of(**pool) != found) {
        return "the lists have changed when counts were applied";
    }
    return std::nullopt;
}

constexpr CrashMemory::Lines kinds[] = {CrashMemory::Lines::none, CrashMemory::Lines::all, CrashMemory::Lines::some,
                                        CrashMemory::Lines::some};

/// Runs transactions, and makes crashes at one of `every` fences.
std::vector<Crash> crashes_of_program(std::uint64_t seed, std::uint64_t transactions, std::uint64_t every, std::uint64_t fence_left_out = 0)
{
    std::mt19937_64 random(seed);
    auto memory = new_memory(0);
    auto pool = open_memory(memory, 0);
    EXPECT_TRUE(pool) << pool.error().message;
    std::vector<Crash> crashes;
    Model model;
    std::size_t first_of_transaction = 0;
    memory->fence_left_out = fence_left_out == 0 ? 0 : memory->fences + fence_left_out;
    memory->before_fence = [&] {
        if (random() % every == 0) {
            crashes.push_back({memory->crash(kinds[random() % std::size(kinds)], random), model, {}});
        }
    };
    for (std::uint64_t i = 0; i < transactions; ++i) {
        first_of_transaction = crashes.size();
        EXPECT_TRUE(run_transaction(**pool, model, random));
        for (std::size_t j = first_of_transaction; j < crashes.size(); ++j) {
            crashes[j].after = model;
        }
        if (i % 4 == 3) {
            first_of_transaction = crashes.size();
            (*pool)->parts().counts.pass();
            for (std::size_t j = first_of_transaction; j < crashes.size(); ++j) {
                crashes[j].after = model;
            }
        }
    }
    memory->before_fence = nullptr;
    EXPECT_EQ(complaint_of_counts(**pool, objects_in(model)).value_or(""), "");
    return crashes;
}

TEST(BreezeCrashes, LeaveWholeTransactionsAtTheSameAddress)
{
    for (const Crash& crash : crashes_of_program(1, 90, test::case_step(5, 20))) {
        const auto complaint = judge(crash.content, crash, 1);
        ASSERT_FALSE(complaint) << *complaint;
    }
}

TEST(BreezeCrashes, LeaveWholeTransactionsWhereverThePoolLies)
{
    unsigned place_number = 2;
    for (const Crash& crash : crashes_of_program(2, 90, test::case_step(5, 20))) {
        const auto complaint = judge(crash.content, crash, place_number);
        ASSERT_FALSE(complaint) << *complaint;
        place_number = 1 + place_number % 5;
    }
}

/// Recovery of `content` at one place, crashed at fences, each recovered at another place, `depth` times.
void crash_recovery(const Bytes& content, const Crash& crash, unsigned place_number, unsigned depth, std::mt19937_64& random)
{
    std::vector<Bytes> left;
    {
        auto memory = std::make_shared<CrashMemory>(content);
        memory->before_fence = [&] { left.push_back(memory->crash(kinds[random() % std::size(kinds)], random)); };
        auto pool = open_memory(memory, place_number);
        ASSERT_TRUE(pool) << pool.error().message;
        memory->before_fence = nullptr;
    }
    for (int i = 0; i < 2 && !left.empty(); ++i) {
        const Bytes chosen = left[random() % left.size()];
        const auto complaint = judge(chosen, crash, place_number + 1);
        ASSERT_FALSE(complaint) << *complaint << ", at depth " << depth;
        if (depth > 1) {
            crash_recovery(chosen, crash, place_number + 1, depth - 1, random);
        }
    }
}

TEST(BreezeCrashes, OfRecoveryAndOfTheRewritingOfARewritingDoNoHarm)
{
    std::mt19937_64 random(3);
    const auto crashes = crashes_of_program(3, 80, 32);
    for (std::size_t i = 0; i < crashes.size(); i += test::case_step(2, 20)) {
        ASSERT_NO_FATAL_FAILURE(crash_recovery(crashes[i].content, crashes[i], 2, 3, random));
    }
}

TEST(BreezeCrashes, ByScansOfSeveralThreadsGiveTheSame)
{
    for (const Crash& crash : crashes_of_program(4, 80, test::case_step(10, 30))) {
        auto pool = open_memory(std::make_shared<CrashMemory>(crash.content), 3, 3);
        ASSERT_TRUE(pool) << pool.error().message;
        const Model found = model_of(**pool);
        ASSERT_TRUE(found == crash.before || found == crash.after);
        EXPECT_EQ(complaint_of_counts(**pool, objects_in(found)).value_or(""), "");
    }
}

TEST(BreezeCrashes, AreNoticedWhereAFenceIsLeftOut)
{
    // Fences of the first transactions: of the log, of the stores, and of the word that ends a transaction.
    unsigned noticed = 0;
    for (std::uint64_t fence = 1; fence <= 10; ++fence) {
        bool is_noticed = false;
        for (const Crash& crash : crashes_of_program(5, 6, 2, fence)) {
            is_noticed = is_noticed || judge(crash.content, crash, 2).has_value();
        }
        noticed += is_noticed ? 1 : 0;
    }
    EXPECT_GE(noticed, 2u);
}

}  // namespace
}  // namespace stillpoint::breeze::testing

// Pools on a file, whose image is private memory with a journal:
//   - After a crash in any write or sync the lists are as after exactly one transaction, not older than the last one that committed.
//   - Sectors of what was not synced may be old, new or garbage.
//   - Recovery may crash, and be run again at another address.
//   - The journal begins again when pages are up to date, also in the middle of a program.
//   - When the disk fails, no later transaction is said to be durable.
//   - Programs that are closed, killed, cut off from power or refused by the disk follow each other: what one has found stays.
//   - A damaged record is noticed.
// tests/breeze/journal_canaries_test.cpp shows that these tests notice each step of the journal that is left out.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "support/breeze_disk.hpp"

namespace stillpoint::breeze::testing {
namespace {

struct ProgramRun {
    Model before;  ///< the last committed state
    Model after;   ///< that of the transaction under way
    bool crashed = false;
};

/// Transactions until the disk is dead.
ProgramRun run_program(const std::shared_ptr<FakeDisk>& disk, std::uint64_t seed, int transactions)
{
    std::mt19937_64 random(seed);
    ProgramRun run;
    auto pool = open_disk(disk, 0);
    if (!pool) {
        run.crashed = true;
        return run;
    }
    for (int i = 0; i < transactions && !run.crashed; ++i) {
        run.before = run.after;
        run.crashed = !run_transaction(**pool, run.after, random).has_value();
        if (i % 5 == 4) {
            (*pool)->parts().counts.pass();
        }
        if (i % 20 == 19 && !run.crashed) {
            run.before = run.after;
            run.crashed = !(*pool)->parts().memory.close().has_value();  // Pages are brought up to date.
        }
    }
    if (!run.crashed) {
        run.before = run.after;
    }
    return run;
}

std::optional<std::string> judge(const Bytes& content, const ProgramRun& run, unsigned place_number)
{
    auto pool = open_disk(std::make_shared<FakeDisk>(content), place_number);
    if (!pool) {
        return pool.error().message;
    }
    const Model found = model_of(**pool);
    if (found != run.before && found != run.after) {
        return "the lists are as after no transaction";
    }
    return complaint_of_counts(**pool, objects_in(found));
}

constexpr int transactions = 45;

TEST(BreezeJournal, LeavesWholeTransactionsAfterCrashesOfTheDisk)
{
    std::mt19937_64 random(1);
    const auto whole = std::make_shared<FakeDisk>(new_disk());
    ASSERT_FALSE(run_program(whole, 1, transactions).crashed);
    for (std::uint64_t crash_at = 0; crash_at < whole->operations; crash_at += 2 + random() % 4) {
        const auto disk = std::make_shared<FakeDisk>(new_disk());
        disk->crash_at = crash_at;
        const ProgramRun run = run_program(disk, 1, transactions);
        for (int i = 0; i < 2; ++i) {
            const Bytes left = power_cut(*disk, random);
            const auto complaint = judge(left, run, 1);
            ASSERT_FALSE(complaint) << *complaint << ", crash at " << crash_at;
            auto again = std::make_shared<FakeDisk>(left);  // Recovery crashes too.
            again->crash_at = random() % 8;
            static_cast<void>(open_disk(again, 2));
            const auto second = judge(power_cut(*again, random), run, 3);
            ASSERT_FALSE(second) << *second << ", crash at " << crash_at << ", then within recovery at " << again->crash_at;
        }
    }
}

/// Transactions of two logs, some of which wait, until the disk is dead. The states since the last one that was durable for certain.
std::vector<Model> run_early_commits(const std::shared_ptr<FakeDisk>& disk, std::uint64_t seed)
{
    std::mt19937_64 random(seed);
    std::vector<Model> states(1);
    auto pool = open_disk(disk, 0);
    for (int i = 0; pool && i < transactions; ++i) {
        Transaction* const other_log = random() % 2 == 0 ? &(*pool)->begin() : nullptr;
        const bool waits = random() % 6 == 0;
        Model model = states.back();
        const bool saved_midway = random() % 4 == 0;
        const auto committed = run_transaction(**pool, model, random, waits, saved_midway);
        states.push_back(std::move(model));
        if (other_log != nullptr) {
            EXPECT_TRUE(other_log->commit());
            (*pool)->end(*other_log);
        }
        if (i % 5 == 4) {
            (*pool)->parts().counts.pass();
        }
        const bool waits_later = random() % 6 == 0;
        if (!committed || (waits_later && !(*pool)->parts().memory.wait_durable())) {
            return states;
        }
        // One that is rolled back waits for nothing.
        if (waits_later || (waits && states[states.size() - 1] != states[states.size() - 2])) {
            states.erase(states.begin(), states.end() - 1);
        }
    }
    return states;
}

TEST(BreezeJournal, KeepsTheOrderOfTransactionsThatDoNotWait)
{
    std::mt19937_64 random(5);
    std::size_t later = 0;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        const auto disk = std::make_shared<FakeDisk>(new_disk());
        disk->crash_at = random() % 60;
        const std::vector<Model> states = run_early_commits(disk, seed);
        auto pool = open_disk(std::make_shared<FakeDisk>(power_cut(*disk, random)), 1);
        ASSERT_TRUE(pool) << pool.error().message;
        const Model found = model_of(**pool);
        ASSERT_NE(std::ranges::find(states, found), states.end())
            << "seed " << seed << ": the lists are as after no transaction, or an older one";
        const auto complaint = complaint_of_counts(**pool, objects_in(found));
        ASSERT_FALSE(complaint) << *complaint << ", seed " << seed;
        later += states.size() > 2 && found != states.front() && found != states.back() ? 1u : 0u;
    }
    EXPECT_GT(later, 0u) << "no crash came between two transactions that did not wait";
}

TEST(BreezeJournal, LosesNothingHoweverProgramsEnd)
{
    const auto number_of = [](const char* name, std::uint64_t usual) {
        const char* const wanted = std::getenv(name);
        return wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : usual;
    };
    const std::uint64_t first = number_of("STILLPOINT_BREEZE_FIRST_LIFE", 1);
    const std::uint64_t lives = number_of("STILLPOINT_BREEZE_LIVES", 24);
    for (std::uint64_t seed = first; seed < first + lives; ++seed) {
        const auto complaint = LifeOfAPool(seed).live(12);
        ASSERT_FALSE(complaint) << "life " << seed << ": " << *complaint;
    }
}

TEST(BreezeJournal, RefusesAPoolWithADamagedRecord)
{
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        const auto complaint = complaint_about_damage(seed);
        ASSERT_FALSE(complaint) << *complaint << ", seed " << seed;
    }
}

TEST(BreezeJournal, KeepsEverythingWhenClosed)
{
    const auto disk = std::make_shared<FakeDisk>(new_disk());
    std::mt19937_64 random(2);
    Model model;
    for (unsigned opening = 0; opening < 4; ++opening) {
        auto pool = open_disk(disk, opening % 2);
        ASSERT_TRUE(pool) << pool.error().message;
        EXPECT_EQ(model_of(**pool), model);
        for (int i = 0; i < 30; ++i) {
            ASSERT_TRUE(run_transaction(**pool, model, random));
        }
        ASSERT_TRUE((*pool)->close());
    }
    EXPECT_EQ(disk->durable, disk->cached);
}

TEST(BreezeJournal, SaysNothingIsDurableAfterTheDiskHasFailed)
{
    const auto disk = std::make_shared<FakeDisk>(new_disk());
    std::mt19937_64 random(3);
    Model model;
    auto pool = open_disk(disk, 0);
    ASSERT_TRUE(pool) << pool.error().message;
    ASSERT_TRUE(run_transaction(**pool, model, random));
    disk->fail_at = disk->operations;
    Model lost = model;
    EXPECT_FALSE(run_transaction(**pool, lost, random));
    EXPECT_FALSE(run_transaction(**pool, lost, random));
    EXPECT_FALSE((*pool)->close());
}

}  // namespace
}  // namespace stillpoint::breeze::testing

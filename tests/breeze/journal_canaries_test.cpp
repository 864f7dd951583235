// Each step of breeze's journal is left out once, and the tests of the journal notice: they find a lost commit, or damage that is taken
// for a journal, or the program ends by a signal.

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>

#include "core/canary.hpp"
#include "support/breeze_disk.hpp"

namespace stillpoint {

namespace {
std::atomic<int> removed{-1};
}  // namespace

inline namespace with_canaries {
bool is_removed(Canary canary) noexcept { return removed.load(std::memory_order_relaxed) == static_cast<int>(canary); }
bool shares_are_small() noexcept { return false; }
}  // namespace with_canaries

namespace breeze::testing {
namespace {

struct JournalCanary {
    Canary canary;
    std::string_view name;
};

constexpr JournalCanary canaries[] = {
#define STILLPOINT_CANARY(name, campaign, text) {Canary::name, #name},
#include "engines/breeze/canaries.inc"
#undef STILLPOINT_CANARY
};

constexpr unsigned seconds_max = 400;  ///< some need 20 s of CPU time
constexpr std::uint64_t lives_max = 400;

bool is_noticed_within(std::uint64_t lives)
{
    for (std::uint64_t seed = 1; seed <= lives; ++seed) {
        if ((seed <= 12 && complaint_about_damage(seed)) || LifeOfAPool(seed).live(12) || ::testing::Test::HasFailure()) {
            return true;
        }
    }
    return false;
}

/// In a process of its own: a broken pool may lead anywhere.
bool is_noticed(Canary canary)
{
    const pid_t child = fork();
    if (child == 0) {
        removed.store(static_cast<int>(canary));
        alarm(seconds_max);
        const bool noticed = is_noticed_within(lives_max);
        _exit(noticed ? 1 : 0);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    const bool was_too_slow = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
    return !was_too_slow && (WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
}

class BreezeJournalCanary : public ::testing::TestWithParam<JournalCanary> {};

TEST_P(BreezeJournalCanary, IsNoticed)
{
    if (!GetParam().name.starts_with("journal_")) {
        GTEST_SKIP() << "the crash explorer's";
    }
    EXPECT_TRUE(is_noticed(GetParam().canary)) << GetParam().name;
}

INSTANTIATE_TEST_SUITE_P(Each, BreezeJournalCanary, ::testing::ValuesIn(canaries),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(BreezeJournalCanaries, AreNeededForAComplaint) { EXPECT_FALSE(is_noticed_within(12)); }

}  // namespace
}  // namespace breeze::testing
}  // namespace stillpoint

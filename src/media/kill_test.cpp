// A process that is killed at a persist point, on every way to the disk. Invariants:
//   - every persist point can be reached, one after the other, until the work ends by itself;
//   - what a sync had returned for is there; a page is as it was or as it was to become;
//   - once a pool is open again, no write of the killed process reaches it any more.

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <gtest/gtest.h>
#include <span>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "media/open.hpp"
#include "support/temporary_directory.hpp"
#include "support/test_pages.hpp"

namespace stillpoint {
namespace {

struct KilledMedium {
    const char* name;
    MediumKind kind;
    bool disable_io_uring;
    bool disable_direct_io;
    Durability durability;
};

class KillTest : public testing::TestWithParam<KilledMedium> {
protected:
    [[nodiscard]] MediumOptions options(const std::string& faults = {}) const
    {
        MediumOptions options;
        options.path = directory_.file("pool");
        options.kind = GetParam().kind;
        options.faults = faults;
        options.disable_io_uring = GetParam().disable_io_uring;
        options.disable_direct_io = GetParam().disable_direct_io;
        options.durability = GetParam().durability;
        return options;
    }

    test::TemporaryDirectory directory_;
};

constexpr std::uint64_t pages_at_first = 8;
constexpr unsigned rounds = 3;

void write_all(int fd, unsigned char byte)
{
    if (write(fd, &byte, 1) != 1) {
        _exit(9);
    }
}

/// Three rounds, each of two pages, a sync and a word to `told`; a growth before the last.
void work(const MediumOptions& options, int told)
{
    auto medium = create_medium(options, pages_at_first * page_bytes);
    if (!medium) {
        _exit(2);
    }
    for (unsigned round = 1; round <= rounds; ++round) {
        if (round == rounds && !(*medium)->resize(2 * pages_at_first * page_bytes)) {
            _exit(3);
        }
        const auto pages = test::numbered_pages(rounds);
        const BlockWrite batch[] = {test::write_of(pages[round - 1], round), test::write_of(pages[round - 1], 5)};
        if (!(*medium)->write(batch) || !(*medium)->sync()) {
            _exit(4);
        }
        write_all(told, static_cast<unsigned char>(round));
    }
    _exit(0);
}

/// The last round that the process was told is durable, and how it ended.
struct Outcome {
    unsigned acknowledged = 0;
    int status = 0;
};

Outcome run_until_killed(const MediumOptions& options)
{
    std::array<int, 2> told{};
    EXPECT_EQ(pipe(told.data()), 0);
    const pid_t child = fork();
    if (child == 0) {
        work(options, told[1]);
    }
    close(told[1]);
    Outcome outcome;
    unsigned char round = 0;
    while (read(told[0], &round, 1) == 1) {
        outcome.acknowledged = round;
    }
    close(told[0]);
    EXPECT_EQ(waitpid(child, &outcome.status, 0), child);
    return outcome;
}

void expect_whole(const Medium& medium, unsigned acknowledged)
{
    for (unsigned round = 1; round <= rounds; ++round) {
        const unsigned value = test::page_value(medium, round);
        EXPECT_TRUE(value == round || (value == 0 && round > acknowledged)) << "page " << round << ": " << value;
    }
    const unsigned last = test::page_value(medium, 5);
    EXPECT_TRUE(last <= rounds && last >= acknowledged) << last;
    EXPECT_GE(medium.size_bytes(), (acknowledged == rounds ? 2 : 1) * pages_at_first * page_bytes);
}

TEST_P(KillTest, LosesNothingThatWasSyncedAtAnyPersistPoint)
{
    unsigned kills = 0;
    for (unsigned n = 1; n < 1000; ++n) {
        const Outcome outcome = run_until_killed(options("persist:kill@" + std::to_string(n)));
        if (WIFEXITED(outcome.status)) {
            EXPECT_EQ(WEXITSTATUS(outcome.status), 0);
            break;
        }
        ASSERT_EQ(WTERMSIG(outcome.status), SIGKILL);
        ++kills;
        const auto medium = open_medium(options());
        ASSERT_TRUE(medium) << medium.error().message;
        if ((*medium)->size_bytes() == 0) {
            EXPECT_EQ(outcome.acknowledged, 0u) << "killed before it had its first byte";
        } else {
            expect_whole(**medium, outcome.acknowledged);
        }
        ASSERT_EQ(unlink(options().path.c_str()), 0);
    }
    // At least: the allocation, the growth, and in each round two writes and two ends of a sync.
    EXPECT_GE(kills, GetParam().durability == Durability::power ? 2 + 4 * rounds : 2 + 3 * rounds);
    EXPECT_LT(kills, 200u);
}

INSTANTIATE_TEST_SUITE_P(Ways, KillTest,
                         testing::Values(KilledMedium{"queued_direct", MediumKind::file, false, false, Durability::power},
                                         KilledMedium{"queued_page_cache", MediumKind::file, false, true, Durability::power},
                                         KilledMedium{"pwritev", MediumKind::file, true, true, Durability::power},
                                         KilledMedium{"process", MediumKind::file, false, false, Durability::process},
                                         KilledMedium{"memory", MediumKind::memory, false, false, Durability::power}),
                         [](const auto& way) { return std::string(way.param.name); });

// -- Writes that are in flight when the process dies ---------------------------------------

constexpr std::uint64_t run_pages = 256;  ///< The largest write that a file medium asks for.
constexpr std::uint64_t runs_in_flight = 32;

/// Writes the whole file again and again, each time with another number, until it is killed.
[[noreturn]] void write_for_ever(const MediumOptions& options, int told)
{
    auto medium = open_medium(options);
    if (!medium) {
        _exit(2);
    }
    std::vector<test::Page> pages(run_pages);
    std::vector<BlockWrite> batch;
    // Each run several times: more of them than the queue is deep, so that it is full at any moment.
    for (std::uint64_t i = 0; i < 16 * runs_in_flight; ++i) {
        batch.push_back({i % runs_in_flight * run_pages * page_bytes, pages[0].bytes, run_pages * page_bytes});
    }
    write_all(told, 1);
    for (std::uint64_t number = 1;; ++number) {
        for (test::Page& page : pages) {
            std::memcpy(page.bytes, &number, sizeof number);
        }
        if (!(*medium)->write(batch)) {
            _exit(3);
        }
    }
}

/// The number at the end of each run: read quickly, so as to be sooner than a late write.
std::vector<std::uint64_t> numbers_in(const Medium& medium)
{
    std::vector<std::uint64_t> numbers(runs_in_flight);
    for (std::uint64_t i = 0; i < runs_in_flight; ++i) {
        const std::uint64_t last_page = (i + 1) * run_pages - 1;
        EXPECT_TRUE(medium.read(last_page * page_bytes, std::as_writable_bytes(std::span{&numbers[i], 1})));
    }
    return numbers;
}

TEST(KillInFlight, LeavesNoWriteThatLandsOnceThePoolIsOpenAgain)
{
    const test::TemporaryDirectory directory;
    MediumOptions options;
    options.path = directory.file("pool");
    options.kind = MediumKind::file;
    ASSERT_TRUE(create_medium(options, runs_in_flight * run_pages * page_bytes));
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
    for (unsigned kill_number = 0; kill_number < 40 && std::chrono::steady_clock::now() < end; ++kill_number) {
        std::array<int, 2> told{};
        ASSERT_EQ(pipe(told.data()), 0);
        const pid_t child = fork();
        if (child == 0) {
            write_for_ever(options, told[1]);
        }
        close(told[1]);
        char byte = 0;
        ASSERT_EQ(read(told[0], &byte, 1), 1);
        close(told[0]);
        std::this_thread::sleep_for(std::chrono::microseconds(1000 + 730 * (kill_number % 17)));
        kill(child, SIGKILL);
        ASSERT_EQ(waitpid(child, nullptr, 0), child);
        // Without a probe of O_DIRECT, which waits in the queue of the device after such writes.
        MediumOptions soon = options;
        soon.disable_io_uring = true;
        const auto medium = open_medium(soon);
        ASSERT_TRUE(medium) << medium.error().message;
        const auto at_once = numbers_in(**medium);
        std::this_thread::sleep_for(std::chrono::milliseconds(25));
        ASSERT_EQ(at_once, numbers_in(**medium)) << "kill " << kill_number;
    }
}

}  // namespace
}  // namespace stillpoint

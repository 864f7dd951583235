// The promises of engines of page versions across a crash, on the real media, with every tracker.
//
// Invariants: after a crash memory is as at the last durable epoch, whole; an epoch that did not
// commit leaves nothing, then or later; epoch numbers are not used twice; recovery can be repeated.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "support/cases.hpp"
#include "support/crashing_program.hpp"
#include "support/temporary_directory.hpp"
#include "core/sanitizers.hpp"
#include "runtime/statistics.hpp"

namespace stillpoint {
namespace {

using test::crash;
using test::killed;
using test::run_with_pool;
using test::stored;
using test::words_per_page;

constexpr std::size_t table_words = 1 << 18;  // 2 MiB: 512 pages
/// No checkpoint but those that a test asks for.
constexpr const char* manual = " interval_ms=3600000";

struct State {
    std::uint64_t value;
    std::uint64_t* table;
    std::uint64_t epoch_seen;
};

State* state()
{
    auto* root = static_cast<State*>(sp_root("state", sizeof(State)));
    if (root->table == nullptr) {
        sp_fase_begin();
        root->table = static_cast<std::uint64_t*>(sp_calloc(table_words, sizeof(std::uint64_t)));
        stored(root->table);
        sp_fase_end();
    }
    return root;
}

void set_all(std::uint64_t value)
{
    State* const root = state();
    sp_fase_begin();
    root->value = value;
    stored(root->value);
    for (std::size_t i = 0; i < table_words; i += words_per_page) {
        root->table[i] = value;
        stored(root->table[i]);
    }
    sp_fase_end();
}

/// 0 if the whole state is `value`.
int compare_all(std::uint64_t value)
{
    const State* const root = state();
    if (root->value != value) {
        std::fprintf(stderr, "value is %lu, not %lu\n", root->value, value);
        return 1;
    }
    for (std::size_t i = 0; i < table_words; i += words_per_page) {
        if (root->table[i] != value) {
            std::fprintf(stderr, "word %zu is %lu, not %lu\n", i, root->table[i], value);
            return 2;
        }
    }
    return 0;
}

class EnginesRecovery : public testing::TestWithParam<const char*> {
protected:
    int run(const std::function<int()>& body, const std::string& more = manual)
    {
        return run_with_pool(pool_, "pool_size_mb=16 " + std::string(GetParam()) + " " + more, body);
    }

    /// Process durability needs no sync, and a fence reports no error.
    static bool sync_can_fail()
    {
        const std::string options = GetParam();
        return options.find("durability=process") == std::string::npos && options.find("medium=memory") == std::string::npos;
    }

    test::TemporaryDirectory directory_;
    std::string pool_ = directory_.file("test.pool");
};

INSTANTIATE_TEST_SUITE_P(Configurations, EnginesRecovery,
                         testing::Values("tracker=uffd recovery=lazy medium=file", "tracker=uffd recovery=eager medium=file",
                                         "tracker=mprotect medium=file", "tracker=uffd medium=memory",
                                         "tracker=mprotect medium=memory durability=process", "tracker=uffd medium=file durability=process",
                                         "tracker=uffd staging_max_mb=1", "tracker=hooks recovery=lazy medium=file staging_max_mb=1",
                                         "tracker=hooks recovery=eager medium=memory durability=process",
                                         "tracker=hooks verify_marks medium=file durability=process",
                                         "engine=pronto recovery=lazy medium=file",
                                         "engine=pronto recovery=eager medium=file staging_max_mb=1", "engine=pronto medium=memory",
                                         "engine=pronto medium=memory durability=process recovery=eager"),
                         [](const auto& configuration) {
                             std::string name = configuration.param;
                             for (char& letter : name) {
                                 letter = std::isalnum(static_cast<unsigned char>(letter)) != 0 ? letter : '_';
                             }
                             return name;
                         });

TEST_P(EnginesRecovery, KeepsWhatACheckpointMadeDurableAndNothingLater)
{
    EXPECT_EQ(run([] {
                  set_all(1);
                  EXPECT_EQ(sp_checkpoint(), SP_OK);
                  set_all(2);
                  crash();
                  return 0;
              }),
              killed);
    for (int again = 0; again < 2; ++again) {
        EXPECT_EQ(run([] {
                      const int wrong = sp_start_kind() == SP_START_CRASHED ? compare_all(1) : 3;
                      if (wrong == 0) {
                          crash();
                      }
                      return wrong;
                  }),
                  killed);
    }
}

TEST_P(EnginesRecovery, LosesAtMostTheRunningEpochAndTheOneThatIsWritten)
{
    constexpr std::uint64_t epochs_max = 100'000;
    struct Seen {
        std::uint64_t sections_of[epochs_max];  ///< that had ended when the running epoch was this one
        std::uint64_t durable;
        std::uint64_t widest;  ///< from a durable epoch to the running one, once a checkpoint of this run was durable
    };
    auto* const seen = static_cast<Seen*>(mmap(nullptr, sizeof(Seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(seen, MAP_FAILED);
    EXPECT_EQ(run(
                  [&] {
                      State* const root = state();
                      const std::uint64_t first = sp_durable_epoch();
                      for (unsigned epochs = 0; epochs < 6;) {
                          sp_fase_begin();
                          ++root->value;
                          stored(root->value);
                          sp_fase_end();
                          // In this order: what is durable only grows. Between the calls it may come to the epoch that ran, and beyond.
                          const std::uint64_t running = sp_epoch();
                          const std::uint64_t durable = sp_durable_epoch();
                          seen->sections_of[running % epochs_max] = root->value;
                          if (durable != first) {
                              seen->widest = std::max(seen->widest, running - std::min(running, durable));
                              epochs += durable != seen->durable ? 1 : 0;
                              seen->durable = durable;
                          }
                      }
                      crash();
                      return 0;
                  },
                  " interval_ms=2"),
              killed);
    EXPECT_LE(seen->widest, 2U);
    EXPECT_EQ(run([&] {
                  const std::uint64_t recovered = sp_durable_epoch();
                  return recovered < seen->durable ? 2 : state()->value < seen->sections_of[recovered % epochs_max] ? 1 : 0;
              }),
              0);
    munmap(seen, sizeof(Seen));
}

TEST_P(EnginesRecovery, KeepsEverythingAtANormalEnd)
{
    EXPECT_EQ(run([] {
                  set_all(7);
                  return 0;
              }),
              0);
    EXPECT_EQ(run([] { return sp_start_kind() == SP_START_CLEAN ? compare_all(7) : 3; }), 0);
}

TEST_P(EnginesRecovery, IsFreshWhenTheFirstEpochNeverCommitted)
{
    EXPECT_EQ(run([] {
                  set_all(1);
                  crash();
                  return 0;
              }),
              killed);
    EXPECT_EQ(run([] { return sp_start_kind() == SP_START_FRESH ? compare_all(0) : 3; }), 0);
}

TEST_P(EnginesRecovery, NeverUsesAnEpochNumberTwice)
{
    // The second run commits nothing at all.
    std::uint64_t numbers[3] = {};
    int pipe_ends[2];
    ASSERT_EQ(pipe(pipe_ends), 0);
    for (std::uint64_t& number : numbers) {
        ASSERT_EQ(run([&] {
                      set_all(1);
                      if (&number != &numbers[1]) {
                          sp_checkpoint();
                      }
                      const std::uint64_t epoch = sp_epoch();
                      [[maybe_unused]] const auto written = write(pipe_ends[1], &epoch, sizeof epoch);
                      crash();
                      return 0;
                  }),
                  killed);
        ASSERT_EQ(read(pipe_ends[0], &number, sizeof number), static_cast<ssize_t>(sizeof number));
    }
    EXPECT_GT(numbers[1], numbers[0]);
    EXPECT_GT(numbers[2], numbers[1] + 1);  // The third run committed one epoch of its own.
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

TEST_P(EnginesRecovery, LeavesNothingOfAnEpochThatDidNotCommitEvenLater)
{
    if (!sync_can_fail()) {
        GTEST_SKIP() << "there is no sync to fail";
    }
    EXPECT_EQ(run([] {
                  set_all(1);
                  return sp_checkpoint();
              }),
              0);
    // The data of this epoch reaches the file, its commit record does not.
    setenv("STILLPOINT_FAULT", "sync:EIO@1:always", 1);
    const int outcome = run([] {
        set_all(2);
        const int refused = sp_checkpoint();
        crash();
        return refused;
    });
    unsetenv("STILLPOINT_FAULT");
    EXPECT_TRUE(outcome == killed || outcome == test::could_not_open) << outcome;
    for (int generation = 0; generation < 3; ++generation) {
        EXPECT_EQ(run([] {
                      const int wrong = compare_all(1);
                      // Epochs that do not touch the table pass over the number of the lost one.
                      for (int i = 0; i < 4; ++i) {
                          sp_fase_begin();
                          state()->epoch_seen = sp_epoch();
                          stored(state()->epoch_seen);
                          sp_fase_end();
                          EXPECT_EQ(sp_checkpoint(), SP_OK);
                      }
                      if (wrong == 0) {
                          crash();
                      }
                      return wrong;
                  }),
                  killed);
    }
}

TEST(EnginesTracking, DoesNotTakeUntouchedMemoryForWritten)
{
    const test::TemporaryDirectory directory;
    for (int generation = 0; generation < 2; ++generation) {
        EXPECT_EQ(run_with_pool(directory.file("p"), std::string("pool_size_mb=64 durability=process") + manual,
                                [] {
                                    state();
                                    sp_checkpoint();
                                    // The table, and the allocator's and the directory's pages.
                                    return statistics().dirty_pages_last.load() < 600 ? 0 : 1;
                                }),
                  0);
    }
}

TEST(EnginesTracking, ByMprotectOutlivesTheKernelsLimitOfMappings)
{
    const test::TemporaryDirectory directory;
    EXPECT_EQ(run_with_pool(directory.file("p"), std::string("tracker=mprotect pool_size_mb=512 durability=process") + manual,
                            [] {
                                constexpr std::size_t pages = 80'000;
                                auto* bytes = static_cast<std::byte*>(sp_malloc(pages * page_bytes));
                                sp_fase_begin();
                                for (std::size_t page = 0; page < pages; page += 2) {
                                    bytes[page * page_bytes] = std::byte{1};
                                }
                                sp_fase_end();
                                return sp_checkpoint();
                            }),
              0);
}

TEST_P(EnginesRecovery, GrowsAndKeepsWhatLiesInTheNewSegment)
{
    constexpr std::size_t block_bytes = 8 * mib;
    constexpr int blocks = 8;  // Four times the first size.
    EXPECT_EQ(run([] {
                  auto** list = static_cast<unsigned char**>(sp_root("list", blocks * sizeof(void*)));
                  for (int i = 0; i < blocks; ++i) {
                      sp_fase_begin();
                      list[i] = static_cast<unsigned char*>(sp_malloc(block_bytes));
                      if (list[i] != nullptr) {
                          std::memset(list[i], i + 1, block_bytes);
                          sp_mark_written(list[i], block_bytes);
                      }
                      stored(list[i]);
                      sp_fase_end();
                      if (list[i] == nullptr) {
                          return 1;
                      }
                  }
                  EXPECT_EQ(sp_checkpoint(), SP_OK);
                  crash();
                  return 0;
              }),
              killed);
    EXPECT_EQ(run([] {
                  auto** list = static_cast<unsigned char**>(sp_root("list", blocks * sizeof(void*)));
                  for (int i = 0; i < blocks; ++i) {
                      for (std::size_t at = 0; at < block_bytes; at += 511) {
                          if (list[i][at] != i + 1) {
                              return 1;
                          }
                      }
                  }
                  return 0;
              }),
              0);
}

TEST_P(EnginesRecovery, SurvivesManyCrashesAtRandomMoments)
{
    const auto rounds = static_cast<int>(test::cases(12, 3));
    for (int round = 0; round < rounds; ++round) {
        const int outcome = run(
            [round] {
                const State* const root = state();
                if (compare_all(root->value) != 0) {
                    return 1;
                }
                if (fork() == 0) {
                    usleep(static_cast<useconds_t>(3000 + 7000 * round % 41000));
                    kill(getppid(), SIGKILL);
                    _exit(0);
                }
                for (std::uint64_t value = root->value + 1;; ++value) {
                    set_all(value);
                }
            },
            "interval_ms=5");
        ASSERT_EQ(outcome, killed) << "round " << round;
    }
}

TEST_P(EnginesRecovery, AcknowledgesNothingThatAnErrorKeptFromTheMedium)
{
    if (!sync_can_fail()) {
        GTEST_SKIP() << "there is no sync to fail";
    }
    EXPECT_EQ(run([] {
                  set_all(1);
                  return sp_checkpoint();
              }),
              0);
    setenv("STILLPOINT_FAULT", "sync:EIO@4", 1);  // Opening takes three.
    const int outcome = run([] {
        const std::uint64_t durable = sp_durable_epoch();
        set_all(2);
        const int refused = sp_checkpoint();
        const int still_refused = sp_wait_durable(sp_epoch(), 1000);
        if (sp_durable_epoch() != durable || refused != SP_E_POOL_READ_ONLY || still_refused != SP_E_POOL_READ_ONLY) {
            return 1;
        }
        crash();
        return 0;
    });
    unsetenv("STILLPOINT_FAULT");
    EXPECT_EQ(outcome, killed);
    EXPECT_EQ(run([] { return compare_all(1); }), 0);
}

TEST_P(EnginesRecovery, GivesAForkedChildAPrivateCopy)
{
    EXPECT_EQ(run([] {
                  set_all(3);
                  return 0;
              }),
              0);
    EXPECT_EQ(run([] {
                  session_before_fork();
                  const pid_t child = fork();
                  if (child == 0) {
                      session_after_fork_in_child();
                      const int wrong = compare_all(3);
                      set_all(4);
                      _exit(wrong == 0 && sp_checkpoint() == SP_E_DETACHED ? 0 : 1);
                  }
                  int status = 0;
                  waitpid(child, &status, 0);
                  return status == 0 ? compare_all(3) : 1;
              }),
              0);
    EXPECT_EQ(run([] { return compare_all(3); }), 0);
}

/// Against the rules of a program, and so a race with whatever copies the pages.
[[noreturn]] STILLPOINT_NO_THREAD_SANITIZER void store_for_ever(volatile unsigned char* block, std::size_t bytes)
{
    for (std::size_t at = 0;; at = (at + page_bytes) % bytes) {
        block[at] = static_cast<unsigned char>(block[at] + 1);
    }
}

/// Semaphores, waiters of libc and ignored locks store at any time, also in a stop. Here a thread does so all the time, and pages that
/// find no room in staging memory are written in the stop: many, so that it surely runs meanwhile.
TEST(EnginesEpochs, WithStoresOutsideSectionsLeaveAPoolThatOpens)
{
    constexpr std::size_t bytes = 48 * mib;
    const test::TemporaryDirectory directory;
    const std::string options = "medium=file durability=power pool_size_mb=64 staging_max_mb=1 interval_ms=3600000 tracker=uffd";
    const auto work = [] {
        sp_fase_begin();
        auto* const block = static_cast<unsigned char*>(sp_malloc(bytes));
        std::memset(block, 1, bytes);
        sp_fase_end();
        std::thread([block] { store_for_ever(block, bytes); }).detach();
        EXPECT_EQ(sp_checkpoint(), SP_OK);
        crash();
        return 0;
    };
    EXPECT_EQ(run_with_pool(directory.file("p"), options.c_str(), work), killed);
    EXPECT_EQ(run_with_pool(directory.file("p"), (options + " recovery=eager").c_str(), [] { return 0; }), 0);
}

TEST(EnginesEpochs, AreCommittedForWhoeverWaitsEvenWithoutAWrite)
{
    const test::TemporaryDirectory directory;
    EXPECT_EQ(run_with_pool(directory.file("p"), "pool_size_mb=16 interval_ms=10 durability=process",
                            [] {
                                set_all(1);
                                EXPECT_EQ(sp_checkpoint(), SP_OK);
                                const std::uint64_t idle = sp_epoch();
                                EXPECT_EQ(sp_wait_durable(idle, 10'000), SP_OK);
                                EXPECT_GE(sp_durable_epoch(), idle);
                                EXPECT_EQ(sp_wait_durable(sp_epoch() + 1000, 20), SP_E_TIMED_OUT);
                                sp_fase_begin();
                                EXPECT_EQ(sp_checkpoint(), SP_E_INSIDE_FASE);
                                EXPECT_EQ(sp_wait_durable(1, 0), SP_E_INSIDE_FASE);
                                sp_fase_end();
                                return testing::Test::HasFailure() ? 1 : 0;
                            }),
              0);
}

TEST(EnginesMedia, ReadAPoolThatAnotherMediumWrote)
{
    const test::TemporaryDirectory directory;
    const std::string pool = directory.file("p");
    std::uint64_t value = 0;
    for (const char* medium : {"medium=file", "medium=memory", "medium=file", "medium=memory"}) {
        const std::uint64_t before = value++;
        EXPECT_EQ(run_with_pool(pool, std::string("pool_size_mb=16 ") + medium,
                                [before] {
                                    const int wrong = compare_all(before);
                                    set_all(before + 1);
                                    sp_checkpoint();
                                    set_all(999);
                                    if (wrong == 0) {
                                        sp_checkpoint();
                                        set_all(before + 1);
                                    }
                                    return wrong;
                                }),
                  0)
            << medium;
    }
}

}  // namespace
}  // namespace stillpoint

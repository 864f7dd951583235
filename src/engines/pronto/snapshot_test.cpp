// Snapshots of pronto while the program writes: what is frozen is captured as it was, whichever thread copies it.

#include <atomic>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "engines/pronto/snapshot_staging.hpp"
#include "support/cases.hpp"
#include "support/temporary_directory.hpp"
#include "runtime/statistics.hpp"
#include "support/crashing_program.hpp"

namespace stillpoint::pronto {
namespace {

using test::crash;
using test::killed;
using test::run_with_pool;
using test::words_per_page;

constexpr std::size_t pieces = 24;
constexpr std::size_t words_per_piece = piece_bytes / sizeof(std::uint64_t);
constexpr std::size_t table_words = pieces * words_per_piece;

/// 48 MiB of words; what is done together in a FASE lies in two pieces.
std::uint64_t* table() { return test::durable_words(table_words); }

/// Adds to a word of the first half and to its partner in the second.
void add_to_pair(std::uint64_t* words, std::size_t index, std::uint64_t amount)
{
    sp_fase_begin();
    words[index] += amount;
    words[index + table_words / 2] += amount;
    sp_fase_end();
}

int compare_pairs(const std::uint64_t* words)
{
    for (std::size_t i = 0; i < table_words / 2; ++i) {
        if (words[i] != words[i + table_words / 2]) {
            std::fprintf(stderr, "word %zu is %lu, its partner %lu\n", i, words[i], words[i + table_words / 2]);
            return 1;
        }
    }
    return 0;
}

/// Threads that change pairs all over the table, until told to stop.
class Writers {
public:
    explicit Writers(std::uint64_t* words)
    {
        for (unsigned seed = 0; seed < 3; ++seed) {
            threads_.emplace_back([this, words, seed] {
                std::mt19937_64 random(seed);
                while (!stopping_.load(std::memory_order_relaxed)) {
                    add_to_pair(words, 3 * (random() % (table_words / 6)) + seed, random());
                    count_.fetch_add(1, std::memory_order_relaxed);
                }
            });
        }
    }
    ~Writers() { stop(); }
    void stop()
    {
        stopping_.store(true, std::memory_order_relaxed);
        for (std::thread& thread : threads_) {
            thread.join();
        }
        threads_.clear();
    }
    [[nodiscard]] std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }

private:
    std::atomic<bool> stopping_{false};
    std::atomic<std::uint64_t> count_{0};
    std::vector<std::thread> threads_;
};

class ProntoSnapshots : public ::testing::TestWithParam<const char*> {
protected:
    int run(const std::function<int()>& body, const std::string& more = "")
    {
        return run_with_pool(pool_, "engine=pronto pool_size_mb=64 interval_ms=3600000 " + std::string(GetParam()) + " " + more, body);
    }
    test::TemporaryDirectory directory_;
    std::string pool_ = directory_.file("test.pool");
};

INSTANTIATE_TEST_SUITE_P(Configurations, ProntoSnapshots,
                         ::testing::Values("medium=memory durability=process recovery=lazy",
                                           "medium=memory staging_max_mb=1 recovery=eager",
                                           "medium=file durability=process staging_max_mb=1 recovery=lazy"),
                         [](const auto& configuration) { return "number" + std::to_string(configuration.index); });

TEST_P(ProntoSnapshots, CaptureOneMomentWhileWritersGoOn)
{
    const std::uint64_t rounds = test::cases(3, 3);
    for (std::uint64_t round = 0; round < rounds; ++round) {
        ASSERT_EQ(run([] {
                      std::uint64_t* const words = table();
                      if (compare_pairs(words) != 0) {
                          return 1;
                      }
                      const Writers writers(words);
                      for (int i = 0; i < 3; ++i) {
                          EXPECT_EQ(sp_checkpoint(), SP_OK);
                      }
                      crash();
                      return 0;
                  }),
                  killed)
            << "round " << round;
    }
    EXPECT_EQ(run([] { return compare_pairs(table()); }), 0);
}

TEST_P(ProntoSnapshots, LetWritersGoOnWhileTheyAreWritten)
{
    EXPECT_EQ(run([] {
                  std::uint64_t* const words = table();
                  Writers writers(words);
                  for (int i = 0; i < 5; ++i) {
                      const std::uint64_t before = writers.count();
                      EXPECT_EQ(sp_checkpoint(), SP_OK);
                      while (writers.count() == before) {
                          usleep(100);
                      }
                  }
                  writers.stop();
                  return compare_pairs(words);
              }),
              0);
}

TEST_P(ProntoSnapshots, WriteOnlyPagesThatChanged)
{
    const auto change_pages = [](std::size_t count, std::uint64_t value) {
        std::uint64_t* const words = table();
        sp_fase_begin();
        for (std::size_t i = 0; i < count; ++i) {
            words[i * words_per_piece / 2 + 7 * words_per_page] = value;
        }
        sp_fase_end();
        EXPECT_EQ(sp_checkpoint(), SP_OK);
        return statistics().dirty_pages_last.load();
    };
    EXPECT_EQ(run([&] {
                  change_pages(20, 1);
                  EXPECT_EQ(change_pages(5, 2), 5U);
                  EXPECT_EQ(change_pages(5, 2), 0U);
                  return ::testing::Test::HasFailure() ? 1 : 0;
              }),
              0);
    // A loaded page is known too; a restart changes some pages of the heap and the directory.
    EXPECT_EQ(run([&] {
                  EXPECT_LT(change_pages(6, 3), 6U + 40U);
                  return ::testing::Test::HasFailure() ? 1 : 0;
              }),
              0);
}

TEST_P(ProntoSnapshots, GiveAForkedChildAPrivateCopyInTheMiddleOfOne)
{
    EXPECT_EQ(run([] {
                  std::uint64_t* const words = table();
                  Writers writers(words);
                  std::atomic<bool> done{false};
                  std::thread snapshots([&] {
                      while (!done) {
                          sp_checkpoint();
                      }
                  });
                  int wrong = 0;
                  const std::uint64_t forks = test::cases(5, 2);
                  for (std::uint64_t i = 0; i < forks && wrong == 0; ++i) {
                      session_before_fork();
                      const pid_t child = fork();
                      if (child == 0) {
                          session_after_fork_in_child();
                          std::memset(words, 1, table_words * sizeof(std::uint64_t));
                          _exit(sp_checkpoint() == SP_E_DETACHED ? 0 : 1);
                      }
                      session_after_fork_in_parent();
                      waitpid(child, &wrong, 0);
                  }
                  done = true;
                  snapshots.join();
                  writers.stop();
                  return wrong == 0 ? compare_pairs(words) : 2;
              }),
              0);
}

TEST_P(ProntoSnapshots, TakeWhatASystemCallHasStored)
{
    constexpr std::size_t bytes = 3 * piece_bytes;
    EXPECT_EQ(run([] {
                  std::uint64_t* const words = table();
                  EXPECT_EQ(sp_checkpoint(), SP_OK);
                  const int source = open("/dev/zero", O_RDONLY);
                  std::memset(words, 1, bytes);
                  EXPECT_EQ(sp_checkpoint(), SP_OK);
                  session_prepare_kernel_write(words, bytes);
                  EXPECT_EQ(read(source, words, bytes), static_cast<ssize_t>(bytes));
                  EXPECT_EQ(sp_checkpoint(), SP_OK);
                  close(source);
                  crash();
                  return 0;
              }),
              killed);
    EXPECT_EQ(run([] { return compare_pairs(table()); }), 0);
}

TEST(ProntoGrowth, TakesAPieceThatTheImageEndedIn)
{
    const test::TemporaryDirectory directory;
    const std::string options = "engine=pronto medium=memory pool_size_mb=5 interval_ms=3600000";
    constexpr std::size_t block_bytes = mib;
    EXPECT_EQ(run_with_pool(directory.file("p"), options,
                            [] {
                                auto** const list = static_cast<unsigned char**>(sp_root("list", 40 * sizeof(void*)));
                                for (int i = 0; i < 40; ++i) {
                                    sp_fase_begin();
                                    list[i] = static_cast<unsigned char*>(sp_malloc(block_bytes));
                                    std::memset(list[i], i + 1, block_bytes);
                                    sp_fase_end();
                                    EXPECT_EQ(sp_checkpoint(), SP_OK);
                                }
                                crash();
                                return 0;
                            }),
              killed);
    EXPECT_EQ(run_with_pool(directory.file("p"), options,
                            [] {
                                auto** const list = static_cast<unsigned char**>(sp_root("list", 40 * sizeof(void*)));
                                for (int i = 0; i < 40; ++i) {
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

TEST(ProntoFailure, OfTheMediumLetsWritersGoOn)
{
    const test::TemporaryDirectory directory;
    setenv("STILLPOINT_FAULT", "write:EIO@6:always", 1);
    const std::string options = "engine=pronto medium=file pool_size_mb=64 staging_max_mb=1 interval_ms=3600000";
    const int outcome = run_with_pool(directory.file("p"), options, [] {
        Writers writers(table());
        std::uint64_t refused = 0;
        for (int i = 0; i < 3; ++i) {
            refused += sp_checkpoint() == SP_E_POOL_READ_ONLY ? 1U : 0U;
        }
        const std::uint64_t before = writers.count();
        while (writers.count() < before + 1000) {
            usleep(100);
        }
        writers.stop();
        crash();
        return refused != 0 ? 0 : 1;
    });
    unsetenv("STILLPOINT_FAULT");
    EXPECT_TRUE(outcome == killed || outcome == test::could_not_open) << outcome;
}

TEST(ProntoStaging, KeepsSlotsForHandlersAndGivesEachOnce)
{
    SnapshotStaging staging;
    ASSERT_TRUE(staging.reserve(16 * piece_bytes));
    const std::uint32_t spare = staging.reserved_for_handlers();
    std::vector<std::uint32_t> taken;
    for (std::uint32_t slot = staging.take(spare); slot != SnapshotStaging::none; slot = staging.take(spare)) {
        staging.fill(slot, 100 + slot);
        taken.push_back(slot);
    }
    EXPECT_EQ(taken.size(), 16 - spare);
    for (std::uint32_t i = 0; i < spare; ++i) {
        EXPECT_NE(staging.take(0), SnapshotStaging::none);
    }
    EXPECT_EQ(staging.take(0), SnapshotStaging::none);
    for (std::size_t i = 0; i < taken.size(); ++i) {
        const auto filled = staging.next_filled();
        EXPECT_EQ(filled.piece, 100 + filled.slot);
        staging.give_back(filled.slot);
    }
    EXPECT_EQ(staging.next_filled().slot, SnapshotStaging::none);
    EXPECT_EQ(staging.used_bytes_peak(), 16 * piece_bytes);
    staging.end_snapshot();
    const std::uint32_t again = staging.take(0);
    *staging.bytes_of(again) = std::byte{1};
    staging.give_back(again);
    staging.end_snapshot();
    EXPECT_EQ(*staging.bytes_of(again), std::byte{1});
    staging.note_idle();
    EXPECT_EQ(*staging.bytes_of(again), std::byte{0}) << "its memory has gone back";
}

}  // namespace
}  // namespace stillpoint::pronto

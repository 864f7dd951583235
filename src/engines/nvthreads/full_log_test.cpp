// Threads that fill the logs faster than they are replayed, with large records and small ones: all go on, and nothing is lost.

#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "support/crashing_program.hpp"
#include "support/temporary_directory.hpp"

/// As the compiler would say it: every store is told.
__attribute__((section(NVHOOKS_MODULE_SECTION), used)) static const nvhooks_module stores_told_by_hand = {
    NVHOOKS_MODULE_MAGIC, NVHOOKS_ABI_VERSION, NVHOOKS_MODULE_CALLS_HOOKS, NVHOOKS_CARD_SHIFT, 1, "nvthreads", "tests"};

namespace stillpoint {
namespace {

constexpr unsigned writers = 5;  // More than some machines have shared logs.
constexpr std::size_t words = 4096;
constexpr std::uint64_t sections = 400;

struct State {
    std::uint64_t words_of[writers][words];  // All words of a writer are alike.
    std::uint64_t counters[writers];
};

State* state() { return static_cast<State*>(sp_root("state", sizeof(State))); }

void write(State& root, unsigned writer)
{
    for (std::uint64_t turn = 1; turn <= sections; ++turn) {
        sp_fase_begin();
        auto& row = root.words_of[writer];
        for (std::uint64_t& word : row) {
            word = turn;
        }
        sp_mark_written(row, sizeof row);
        sp_fase_end();
        sp_fase_begin();
        root.counters[writer] = turn;
        test::stored(root.counters[writer]);
        sp_fase_end();
    }
}

int write_all()
{
    State* const root = state();
    std::vector<std::thread> threads;
    for (unsigned writer = 0; writer < writers; ++writer) {
        threads.emplace_back([root, writer] { write(*root, writer); });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    constexpr std::int64_t forever = -1;
    return sp_wait_durable(sp_epoch(), forever) == SP_OK ? 0 : 1;
}

int check_whole()
{
    const State& root = *state();
    for (unsigned writer = 0; writer < writers; ++writer) {
        for (const std::uint64_t word : root.words_of[writer]) {
            if (word != sections) {
                return 1;
            }
        }
        if (root.counters[writer] != sections) {
            return 2;
        }
    }
    return 0;
}

class FullLogOfSections : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

INSTANTIATE_TEST_SUITE_P(MediaAndAcknowledgements, FullLogOfSections,
                         testing::Combine(testing::Values("memory", "file"), testing::Values("unlock", "order")),
                         [](const auto& param) { return std::string(std::get<0>(param.param)) + "_" + std::get<1>(param.param); });

TEST_P(FullLogOfSections, KeepsNoThreadWaitingForGood)
{
    const auto [medium, acknowledge] = GetParam();
    const test::TemporaryDirectory directory;
    const std::string pool = directory.file("test.pool");
    const std::string options = std::string("engine=nvthreads pool_size_mb=4 pool_max_mb=4 durability=process medium=") + medium +
                                " acknowledge=" + acknowledge;
    EXPECT_EQ(test::run_with_pool(pool, options,
                                  [] {
                                      const int result = write_all();
                                      if (result == 0) {
                                          test::crash();
                                      }
                                      return result;
                                  }),
              test::killed);
    EXPECT_EQ(test::run_with_pool(pool, options, [] { return check_whole(); }), 0);
}

}  // namespace
}  // namespace stillpoint

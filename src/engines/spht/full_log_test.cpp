// Threads that fill the log faster than it is replayed, while others store for the library: all go on.

#include <stillpoint/spht.hpp>

#include <atomic>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

#include "support/crashing_program.hpp"
#include "support/temporary_directory.hpp"

namespace stillpoint {
namespace {

constexpr unsigned writers = 2;
constexpr std::size_t words = 16'384;  // A transaction fills a half of a log chunk.
constexpr std::uint64_t transactions = 200;

struct FullLogState {
    std::uint64_t words_of[writers][words];  // All words of a writer are alike.
};

FullLogState* full_log_state() { return static_cast<FullLogState*>(sp_root("state", sizeof(FullLogState))); }

int write_and_allocate()
{
    FullLogState* const root = full_log_state();
    std::atomic<unsigned> writing{writers};
    std::vector<std::thread> threads;
    for (unsigned writer = 0; writer < writers; ++writer) {
        threads.emplace_back([&, writer] {
            for (std::uint64_t turn = 1; turn <= transactions; ++turn) {
                spht::atomically([&](spht::transaction& tx) {
                    for (std::uint64_t& word : root->words_of[writer]) {
                        tx.write(word, turn);
                    }
                });
            }
            --writing;
        });
    }
    threads.emplace_back([&] {
        while (writing != 0) {
            sp_free(sp_malloc(64));
        }
    });
    for (std::thread& thread : threads) {
        thread.join();
    }
    return 0;
}

int check_full_log()
{
    for (const auto& row : full_log_state()->words_of) {
        for (const std::uint64_t word : row) {
            if (word != transactions) {
                return 1;
            }
        }
    }
    return 0;
}

class FullLog : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Media, FullLog, testing::Values("memory", "file"), [](const auto& medium) { return medium.param; });

TEST_P(FullLog, KeepsNoThreadWaitingForGood)
{
    const test::TemporaryDirectory directory;
    const std::string pool = directory.file("test.pool");
    const std::string options = std::string("engine=spht pool_size_mb=16 pool_max_mb=16 durability=process medium=") + GetParam();
    EXPECT_EQ(test::run_with_pool(pool, options,
                                  [] {
                                      const int result = write_and_allocate();
                                      test::crash();
                                      return result;
                                  }),
              test::killed);
    EXPECT_EQ(test::run_with_pool(pool, options, [] { return check_full_log(); }), 0);
}

}  // namespace
}  // namespace stillpoint

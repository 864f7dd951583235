// Replay along links gives what replay by timestamps gives, whatever the program's threads do, and notices where links are missing.

#include <stillpoint/spht.hpp>

#include <gtest/gtest.h>
#include <stdexcept>
#include <string>

#include "support/accounts_program.hpp"
#include "support/crashing_program.hpp"
#include "support/temporary_directory.hpp"

namespace stillpoint {
namespace {

constexpr std::uint64_t large_words = 40'000;  // More than a record, which a chunk of the log holds.

struct State {
    test::Accounts accounts;
    std::uint64_t large[large_words];  // All alike.
};

State* state() { return static_cast<State*>(sp_root("state", sizeof(State))); }

/// 0 if no transaction is there in part.
int check_whole(std::uint64_t transactions_of_a_thread)
{
    const State* const root = state();
    for (const std::uint64_t word : root->large) {
        if (word != root->large[0]) {
            return 9;
        }
    }
    return test::check_whole(root->accounts, transactions_of_a_thread);
}

/// Transfers, transactions that only read and ones that the program rolls back.
void run_threads(std::uint64_t transactions)
{
    const auto more = [](unsigned thread, std::uint64_t number, std::uint64_t random, std::uint64_t& from, std::uint64_t& to) {
        if (random % 5 == 0) {
            static_cast<void>(spht::atomically([&](spht::transaction& tx) { return tx.read(from) + tx.read(to); }, SP_SPHT_READ_ONLY));
        }
        if (random % 7 == 0) {
            EXPECT_THROW(spht::atomically([&](spht::transaction& tx) {
                             tx.write(from, tx.read(from) + 1);
                             throw std::runtime_error("rolled back");
                         }),
                         std::runtime_error);
        }
        if (number % 64 == thread) {
            sp_free(sp_malloc(100));  // The library's own records.
        }
    };
    test::run_threads(state()->accounts, transactions, more);
}

std::uint64_t statistic(const char* name)
{
    std::uint64_t value = 0;
    EXPECT_EQ(sp_statistic(name, &value), SP_OK);
    return value;
}

class Linking : public testing::TestWithParam<const char*> {
protected:
    int run(const std::function<int()>& body)
    {
        return test::run_with_pool(pool_, "engine=spht pool_size_mb=64 interval_ms=5 " + std::string(GetParam()), body);
    }

    test::TemporaryDirectory directory_;
    std::string pool_ = directory_.file("test.pool");
};

INSTANTIATE_TEST_SUITE_P(Configurations, Linking,
                         testing::Values("linking=forward medium=memory durability=process",
                                         "linking=backward medium=memory durability=process",
                                         "linking=forward medium=file durability=process",
                                         "linking=backward medium=file durability=process"),
                         [](const auto& configuration) {
                             std::string name = configuration.param;
                             for (char& letter : name) {
                                 letter = std::isalnum(static_cast<unsigned char>(letter)) != 0 ? letter : '_';
                             }
                             return name;
                         });

TEST_P(Linking, IsFollowedByEveryRound)
{
    constexpr std::uint64_t transactions = 2'000;
    EXPECT_EQ(run([] {
                  run_threads(transactions);
                  EXPECT_EQ(sp_checkpoint(), SP_OK);  // Perhaps by a round that had begun before the last transactions.
                  EXPECT_EQ(sp_checkpoint(), SP_OK);
                  EXPECT_GT(statistic("linked_records"), test::Accounts::threads_count * transactions);
                  EXPECT_EQ(statistic("link_fallbacks"), 0U);
                  if (testing::Test::HasFailure()) {
                      return 9;
                  }
                  test::crash();
                  return 0;
              }),
              test::killed);
    EXPECT_EQ(run([] { return check_whole(transactions); }), 0);
}

TEST_P(Linking, GivesWayWhereARecordHasNoLinks)
{
    constexpr std::uint64_t transactions = 200;
    EXPECT_EQ(run([] {
                  State* const root = state();
                  for (std::uint64_t turn = 1; turn <= 3; ++turn) {
                      run_threads(transactions);
                      spht::atomically([&](spht::transaction& tx) {
                          for (std::uint64_t& word : root->large) {
                              tx.write(word, turn);
                          }
                      });
                      EXPECT_EQ(sp_checkpoint(), SP_OK);
                  }
                  EXPECT_GT(statistic("link_fallbacks"), 0U);
                  if (testing::Test::HasFailure()) {
                      return 9;
                  }
                  test::crash();
                  return 0;
              }),
              test::killed);
    EXPECT_EQ(run([] { return check_whole(3 * transactions) == 0 && state()->large[0] == 3 ? 0 : 1; }), 0);
}

}  // namespace
}  // namespace stillpoint

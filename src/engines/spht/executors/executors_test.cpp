// Every executor keeps transactions apart, and makes them durable. Invariants:
//   - a body sees one state: what two transactions keep equal is equal in every body, also in one that will be run again;
//   - a transaction that runs alone and those beside it do not meet half-way;
//   - a transaction that is rolled back leaves nothing, and gives its blocks back;
//   - what has returned is there after a crash.

#include <stillpoint/spht.hpp>

#include <atomic>
#include <cctype>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "arch/rtm.hpp"
#include "support/crashing_program.hpp"
#include "support/temporary_directory.hpp"

namespace stillpoint {
namespace {

constexpr unsigned threads_count = 3;
constexpr std::uint64_t pairs_count = 16;
constexpr std::uint64_t transactions_of_a_thread = 400;

struct Node {
    std::uint64_t value;
    Node* next;
};

struct alignas(64) Pair {
    std::uint64_t one;
    alignas(64) std::uint64_t other;  ///< always as `one`
};

struct State {
    Pair pairs[pairs_count];
    std::uint64_t steps;  ///< of all pairs together
    std::uint64_t done[threads_count];
    Node* nodes;
    std::uint64_t node_count;
    std::uint64_t large[4096];  ///< all alike, and more than hardware holds
};

State* state() { return static_cast<State*>(sp_root("state", sizeof(State))); }

/// 0 if no transaction is there in part.
int check_whole(std::uint64_t transactions)
{
    const State* const root = state();
    std::uint64_t steps = 0;
    for (const Pair& pair : root->pairs) {
        if (pair.one != pair.other) {
            return 1;
        }
        steps += pair.one;
    }
    std::uint64_t nodes = 0;
    for (const Node* node = root->nodes; node != nullptr; node = node->next) {
        ++nodes;
    }
    for (const std::uint64_t done : root->done) {
        if (done != transactions) {
            return 2;
        }
    }
    for (const std::uint64_t word : root->large) {
        if (word != root->large[0]) {
            return 3;
        }
    }
    return steps != root->steps ? 4 : nodes != root->node_count ? 5 : 0;
}

class Worker {
public:
    Worker(State* root, unsigned thread) : root_(*root), thread_(thread), random_(88'172'645'463'325'252 + thread) {}

    void work()
    {
        for (std::uint64_t i = 0; i < transactions_of_a_thread; ++i) {
            const std::uint64_t kind = next() % 16;
            step(kind == 0 ? SP_SPHT_IRREVOCABLE : kind == 1 ? SP_SPHT_PRIVATIZES : 0, i % 8 == 0);
            if (kind == 2) {
                EXPECT_THROW(roll_back(), std::runtime_error);
            } else if (kind < 6) {
                look();
            } else if (kind == 6) {
                take_node();
            }
        }
    }
    [[nodiscard]] bool saw_one_state() const { return saw_one_state_; }

private:
    std::uint64_t next()
    {
        random_ ^= random_ << 13;
        random_ ^= random_ >> 7;
        random_ ^= random_ << 17;
        return random_ * 0x2545'f491'4f6c'dd1d >> 32;
    }
    void step(unsigned flags, bool adds_node)
    {
        Pair& pair = root_.pairs[next() % pairs_count];
        spht::atomically(
            [&](spht::transaction& tx) {
                check_pair(tx, root_.pairs[next() % pairs_count]);
                const std::uint64_t value = tx.read(pair.one) + 1;
                tx.write(pair.one, value);
                check_pair_after(tx, pair, value);
                tx.write(pair.other, value);
                tx.write(root_.steps, tx.read(root_.steps) + 1);
                tx.write(root_.done[thread_], tx.read(root_.done[thread_]) + 1);
                if (adds_node) {
                    tx.write(root_.nodes, tx.create(Node{value, tx.read(root_.nodes)}));
                    tx.write(root_.node_count, tx.read(root_.node_count) + 1);
                }
            },
            flags);
    }
    void roll_back()
    {
        spht::atomically([&](spht::transaction& tx) {
            tx.write(root_.steps, tx.read(root_.steps) + 1);
            tx.write(root_.nodes, tx.create(Node{0, tx.read(root_.nodes)}));
            throw std::runtime_error("rolled back");
        });
    }
    void look()
    {
        spht::atomically(
            [&](spht::transaction& tx) {
                for (const Pair& pair : root_.pairs) {
                    check_pair(tx, pair);
                }
            },
            SP_SPHT_READ_ONLY);
    }
    void take_node()
    {
        spht::atomically([&](spht::transaction& tx) {
            if (Node* const first = tx.read(root_.nodes); first != nullptr) {
                tx.write(root_.nodes, tx.read(first->next));
                tx.write(root_.node_count, tx.read(root_.node_count) - 1);
                tx.free(first);
            }
        });
    }
    void check_pair(spht::transaction& tx, const Pair& pair)
    {
        const std::uint64_t one = tx.read(pair.one);
        saw_one_state_ &= one == tx.read(pair.other);
    }
    /// The body reads its own write; the other word is as it was.
    void check_pair_after(spht::transaction& tx, const Pair& pair, std::uint64_t value)
    {
        const std::uint64_t one = tx.read(pair.one);
        saw_one_state_ &= one == value && tx.read(pair.other) == value - 1;
    }

    State& root_;
    unsigned thread_;
    std::uint64_t random_;
    bool saw_one_state_ = true;
};

bool run_threads()
{
    State* const root = state();
    std::vector<Worker> workers;
    for (unsigned thread = 0; thread < threads_count; ++thread) {
        workers.emplace_back(root, thread);
    }
    std::vector<std::thread> threads;
    for (Worker& worker : workers) {
        threads.emplace_back([&worker] { worker.work(); });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    bool saw_one_state = true;
    for (const Worker& worker : workers) {
        saw_one_state &= worker.saw_one_state();
    }
    return saw_one_state;
}

std::uint64_t statistic(const char* name)
{
    std::uint64_t value = 0;
    EXPECT_EQ(sp_statistic(name, &value), SP_OK);
    return value;
}

std::string name_of(const testing::TestParamInfo<std::string>& configuration)
{
    std::string name = configuration.param;
    for (char& letter : name) {
        letter = std::isalnum(static_cast<unsigned char>(letter)) != 0 ? letter : '_';
    }
    return name;
}

std::vector<std::string> configurations()
{
    std::vector<std::string> all;
    for (const char* const executor : {"software", "norec", "tinystm", "simulated", "simulated executor_seed=5", "hardware"}) {
        if (std::string(executor) == "hardware" && !arch::Rtm::works()) {
            continue;
        }
        for (const char* const medium : {"memory", "file", "memory linking=forward"}) {
            all.push_back(std::string("durability=process executor=") + executor + " medium=" + medium);
        }
    }
    return all;
}

class Executors : public testing::TestWithParam<std::string> {
protected:
    int run(const std::function<int()>& body)
    {
        return test::run_with_pool(pool_, "engine=spht pool_size_mb=16 interval_ms=20 " + GetParam(), body);
    }

    test::TemporaryDirectory directory_;
    std::string pool_ = directory_.file("test.pool");
};

INSTANTIATE_TEST_SUITE_P(Configurations, Executors, testing::ValuesIn(configurations()), name_of);

TEST_P(Executors, KeepTransactionsApartAndMakeThemDurable)
{
    EXPECT_EQ(run([] {
                  if (!run_threads() || testing::Test::HasFailure()) {
                      return 9;
                  }
                  test::crash();
                  return 0;
              }),
              test::killed);
    EXPECT_EQ(run([] { return check_whole(transactions_of_a_thread); }), 0);
}

TEST_P(Executors, RunTransactionsThatHardwareCannotHold)
{
    EXPECT_EQ(run([] {
                  State* const root = state();
                  for (std::uint64_t turn = 1; turn <= 3; ++turn) {
                      spht::atomically([&](spht::transaction& tx) {
                          for (std::uint64_t& word : root->large) {
                              tx.write(word, tx.read(word) + 1);
                          }
                      });
                  }
                  test::crash();
                  return 0;
              }),
              test::killed);
    EXPECT_EQ(run([] { return check_whole(0) == 0 && state()->large[0] == 3 ? 0 : 1; }), 0);
}

TEST(SimulatedExecutor, CountsAbortsByTheirKindAndRunsSomeTransactionsAlone)
{
    const test::TemporaryDirectory directory;
    EXPECT_EQ(test::run_with_pool(directory.file("test.pool"),
                                  "engine=spht pool_size_mb=16 medium=memory durability=process executor=simulated executor_seed=9",
                                  [] {
                                      EXPECT_TRUE(run_threads());
                                      for (const char* const name : {"conflict_aborts", "capacity_aborts", "explicit_aborts",
                                                                     "debug_aborts", "other_aborts", "run_alone"}) {
                                          EXPECT_GT(statistic(name), 0U) << name;
                                      }
                                      return testing::Test::HasFailure() ? 9 : 0;
                                  }),
              0);
}

TEST(HardwareExecutor, IsRefusedWhereTheCpuHasNoTransactions)
{
    if (arch::Rtm::works()) {
        GTEST_SKIP() << "this CPU has them";
    }
    const test::TemporaryDirectory directory;
    EXPECT_EQ(test::run_program([&] {
                  const int code = sp_open(directory.file("test.pool").c_str(), "quiet engine=spht executor=hardware");
                  return code == SP_E_UNSUPPORTED && std::string(sp_last_error()).find("executor=software") != std::string::npos ? 0 : 1;
              }),
              0);
}

}  // namespace
}  // namespace stillpoint

// The structures of bench/transactions over one engine's transactions, held against the standard library's; and the transactions.
//
// Invariants:
// - One thread's random operations give the answers that the model gives, and leave the same contents in the same order.
// - Two threads that own different keys of one structure leave the union of what each has put there.
// - A transaction sees a state between two other ones, also if it cannot commit; none is lost, none is done by halves.
// - Words of less than 8 bytes keep their neighbours, and a transaction reads what it has written itself.

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <queue>
#include <thread>
#include <utility>
#include <vector>

#include "../../bench/engines/current.hpp"
#include "../../bench/harness/random.hpp"
#include "../../bench/transactions/hash_table.hpp"
#include "../../bench/transactions/heap.hpp"
#include "../../bench/transactions/list.hpp"
#include "../../bench/transactions/queue.hpp"
#include "../../bench/transactions/transactions.hpp"
#include "../../bench/transactions/tree.hpp"

namespace bench {
namespace {

using namespace transactional;
using M = CurrentTransactions;
static_assert(TransactionalMemory<M>);
using Model = std::map<std::uint64_t, std::uint64_t>;

/// A zeroed structure of its own for each test.
template <class T>
T* made(const char* name, std::size_t count = 1)
{
    M::open({});
    return M::named<T>(name, count);
}

void in_threads(unsigned count, const std::function<void(unsigned)>& work)
{
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < count; ++i) {
        threads.emplace_back(work, i);
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

/// Random operations on keys that are `thread` modulo `stride`, and the answers that the model has for them.
template <class Map>
void act_as_model(Map& map, Model& model, unsigned thread, unsigned stride)
{
    Random random(thread + 3);
    for (unsigned i = 0; i < 4000; ++i) {
        const std::uint64_t key = random.below(300) * stride + thread;
        const std::uint64_t value = random.next();
        const std::uint64_t kind = random.below(3);
        if (kind == 0) {
            ASSERT_EQ(M::atomically([&](auto& tx) { return map.insert(tx, key, value); }), model.insert({key, value}).second);
        } else if (kind == 1) {
            const auto removed = M::atomically([&](auto& tx) { return map.remove(tx, key); });
            const auto found = model.find(key);
            ASSERT_EQ(removed, found != model.end() ? std::optional(found->second) : std::nullopt);
            model.erase(key);
        } else {
            const auto read = M::atomically([&](auto& tx) {
                std::uint64_t* const place = map.find(tx, key);
                return place != nullptr ? std::optional(tx.read(*place)) : std::nullopt;
            });
            const auto found = model.find(key);
            ASSERT_EQ(read, found != model.end() ? std::optional(found->second) : std::nullopt);
        }
    }
}

template <class Map>
std::vector<std::pair<std::uint64_t, std::uint64_t>> contents(const Map& map)
{
    std::vector<std::pair<std::uint64_t, std::uint64_t>> found;
    map.for_each([&](std::uint64_t key, std::uint64_t value) { found.emplace_back(key, value); });
    return found;
}

/// One thread, then two with keys of their own.
template <class Map>
void expect_like_model(Map& map, bool is_ordered)
{
    std::array<Model, 2> models;
    act_as_model(map, models[0], 0, 2);
    in_threads(2, [&](unsigned thread) { act_as_model(map, models[thread], thread, 2); });
    Model both = models[0];
    both.insert(models[1].begin(), models[1].end());
    auto found = contents(map);
    if (!is_ordered) {
        std::sort(found.begin(), found.end());
    }
    EXPECT_EQ(found, (std::vector<std::pair<std::uint64_t, std::uint64_t>>(both.begin(), both.end())));
}

TEST(TransactionalStructures, AListAnswersAsASortedMap) { expect_like_model(*made<List<std::uint64_t>>("list"), true); }

TEST(TransactionalStructures, AHashTableAnswersAsAMap)
{
    HashTable<std::uint64_t> table(made<List<std::uint64_t>>("table", 61), 61);
    expect_like_model(table, false);
    table.clear<M>();
    EXPECT_TRUE(contents(table).empty());
}

TEST(TransactionalStructures, ATreeAnswersAsASortedMapAndStaysWhole)
{
    auto& tree = *made<Tree<std::uint64_t>>("tree");
    expect_like_model(tree, true);
    EXPECT_TRUE(tree.is_whole());
    const auto all = contents(tree);
    EXPECT_EQ(M::atomically([&](auto& tx) { return tree.first(tx); }), all.front().first);
    std::size_t disposed = 0;
    tree.clear<M>([&](auto&, std::uint64_t) { ++disposed; });
    EXPECT_GE(disposed, all.size());  // more where a transaction ran again
    EXPECT_TRUE(tree.is_empty());
}

TEST(TransactionalStructures, AQueueGivesEachThreadsNumbersOnceAndInOrder)
{
    auto& queue = *made<Queue<std::uint64_t>>("queue");
    constexpr std::uint64_t each = 3000;
    std::array<std::vector<std::uint64_t>, 2> taken;
    in_threads(2, [&](unsigned thread) {
        for (std::uint64_t i = 0; i < each; ++i) {
            M::atomically([&](auto& tx) { queue.push(tx, i * 2 + thread); });
            if (const auto number = M::atomically([&](auto& tx) { return queue.pop(tx); })) {
                taken[thread].push_back(*number);
            }
        }
    });
    std::vector<unsigned> seen(2 * each);
    for (const auto& numbers : taken) {
        std::array<std::uint64_t, 2> last{};
        for (const std::uint64_t number : numbers) {
            ++seen[number];
            EXPECT_GE(number, last[number % 2]);
            last[number % 2] = number;
        }
    }
    queue.for_each([&](std::uint64_t number) { ++seen[number]; });
    EXPECT_EQ(seen, std::vector<unsigned>(2 * each, 1));
}

TEST(TransactionalStructures, AHeapGivesTheLeastKeyFirst)
{
    auto& heap = *made<Heap<std::uint64_t>>("heap");
    std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<>> model;
    Random random(5);
    for (unsigned i = 0; i < 5000; ++i) {
        if (random.below(5) < 3) {
            const std::uint64_t key = random.below(1000);
            M::atomically([&](auto& tx) { heap.push(tx, key, key); });
            model.push(key);
        } else {
            const auto least = M::atomically([&](auto& tx) { return heap.pop(tx); });
            ASSERT_EQ(least, model.empty() ? std::nullopt : std::optional(model.top()));
            if (!model.empty()) {
                model.pop();
            }
        }
    }
    EXPECT_TRUE(heap.is_whole());
}

TEST(Transactions, ATransactionSeesAStateBetweenTwoOthers)
{
    constexpr std::size_t accounts = 32;
    constexpr std::uint64_t money = 1000;
    auto* const account = made<std::uint64_t>("accounts", accounts);
    for (std::size_t i = 0; i < accounts; ++i) {
        M::atomically([&](auto& tx) { tx.write(account[i], money); });
    }
    in_threads(3, [&](unsigned thread) {
        Random random(thread + 11);
        for (unsigned i = 0; i < 20'000; ++i) {
            if (thread == 0 && i % 16 == 0) {
                M::atomically([&](auto& tx) {
                    std::uint64_t sum = 0;
                    for (std::size_t one = 0; one < accounts; ++one) {
                        sum += tx.read(account[one]);
                    }
                    ASSERT_EQ(sum, accounts * money);  // also in an attempt that cannot commit
                });
            }
            const std::uint64_t from = random.below(accounts);
            const std::uint64_t to = random.below(accounts);
            M::atomically([&](auto& tx) {
                if (tx.read(account[from]) != 0) {
                    subtract(tx, account[from], 1);
                    add(tx, account[to], 1);
                }
            });
        }
    });
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < accounts; ++i) {
        sum += account[i];
    }
    EXPECT_EQ(sum, accounts * money);
}

TEST(Transactions, SmallWordsKeepTheirNeighbours)
{
    struct Small {
        std::uint32_t first;
        std::uint16_t second;
        std::uint8_t third;
        std::uint8_t fourth;
    };
    auto* const small = made<Small>("small");
    constexpr unsigned each = 10'000;
    in_threads(3, [&](unsigned thread) {
        for (unsigned i = 0; i < each; ++i) {
            M::atomically([&](auto& tx) {
                if (thread == 0) {
                    add(tx, small->first, 1);
                } else if (thread == 1) {
                    const std::uint16_t before = tx.read(small->second);
                    tx.write(small->second, static_cast<std::uint16_t>(before + 5));
                    ASSERT_EQ(tx.read(small->second), static_cast<std::uint16_t>(before + 5));
                    add(tx, small->second, static_cast<std::uint16_t>(-4));
                } else {
                    add(tx, small->third, 1);
                    ASSERT_EQ(tx.read(small->fourth), 0);
                }
            });
        }
    });
    EXPECT_EQ(small->first, each);
    EXPECT_EQ(small->second, each);
    EXPECT_EQ(small->third, each % 256);
    EXPECT_EQ(small->fourth, 0);
}

TEST(Transactions, AFreedBlockIsNotReusedWhileAnotherTransactionReadsIt)
{
    struct Block {
        std::uint64_t one;
        std::uint64_t other;  ///< the same number
    };
    auto** const current = made<Block*>("block");
    const auto replace = [&](std::uint64_t number) {
        M::atomically([&](auto& tx) {
            if (Block* const old = tx.read(*current); old != nullptr) {
                tx.free(old);
            }
            auto* const block = make<Block>(tx);
            tx.write(block->one, number);
            tx.write(block->other, number);
            tx.write(*current, block);
        });
    };
    replace(0);
    in_threads(3, [&](unsigned thread) {
        for (std::uint64_t i = 0; i < 10'000; ++i) {
            if (thread == 0) {
                replace(i);
            } else {
                M::atomically([&](auto& tx) {
                    const Block* const block = tx.read(*current);
                    const std::uint64_t one = tx.read(block->one);
                    ASSERT_EQ(one, tx.read(block->other));
                });
            }
        }
    });
}

}  // namespace
}  // namespace bench

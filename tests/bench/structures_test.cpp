// The structures of bench/structures over one engine's memory, without a pool, held against the standard library's.
//
// Invariants:
// - One thread's random operations give the answers that the model gives, and leave the same contents.
// - Two threads that own different keys each find what they alone have put there; what they leave is the union of both.
// - A list's order and its counted length hold whatever two threads did to the same keys.
// - No number is lost or doubled on its way through the queue, and those of one thread keep their order.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "../../bench/engines/current.hpp"
#include "../../bench/harness/random.hpp"
#include "../../bench/structures/btree.hpp"
#include "../../bench/structures/coupled_list.hpp"
#include "../../bench/structures/hash_map.hpp"
#include "../../bench/structures/queue.hpp"
#include "../../bench/structures/skip_list.hpp"
#include "../../bench/workloads/values.hpp"

namespace bench {
namespace {

using E = CurrentEngine;
constexpr std::size_t value_bytes = 24;
using Value = std::array<std::byte, value_bytes>;
using Model = std::map<std::uint64_t, Value>;

Value value_of(std::uint64_t key, std::uint64_t version)
{
    Value value{};
    make_value(value, key, version);
    return value;
}

std::optional<Value> get(auto& store, unsigned thread, std::uint64_t key)
{
    Value value{};
    return store.get(thread, key, value) ? std::optional(value) : std::nullopt;
}

/// `operations` on keys that are `thread` modulo `stride`; tells gtest of the first answer that is not the model's.
void act_as_model(auto& store, Model& model, unsigned thread, unsigned stride, unsigned operations)
{
    Random random(thread + 7);
    for (unsigned i = 0; i < operations; ++i) {
        const std::uint64_t key = key_number(random.below(2000) * stride + thread);
        const auto found = model.find(key);
        switch (random.below(3)) {
        case 0:
            model[key] = value_of(key, i);
            store.put(thread, key, model[key]);
            break;
        case 1:
            ASSERT_EQ(store.remove(thread, key), found != model.end());
            model.erase(key);
            break;
        default: ASSERT_EQ(get(store, thread, key), found != model.end() ? std::optional(found->second) : std::nullopt);
        }
    }
}

void expect_contents(auto& store, const Model& model, unsigned threads)
{
    for (std::uint64_t number = 0; number < 2000 * threads; ++number) {
        const auto found = model.find(key_number(number));
        ASSERT_EQ(get(store, 0, key_number(number)), found != model.end() ? std::optional(found->second) : std::nullopt);
    }
}

void run_two(const std::function<void(unsigned)>& work)
{
    std::thread other(work, 1);
    work(0);
    E::rest();
    other.join();
}

Model act_as_models_in_two_threads(auto& store)
{
    Model models[2];
    run_two([&](unsigned thread) { act_as_model(store, models[thread], thread, 2, 60'000); });
    models[0].merge(models[1]);
    return models[0];
}

/// Few buckets: chains.
HashMap<E> make_map(const char* name) { return {name, 256, value_bytes}; }
Model contents(const HashMap<E>& map)
{
    Model found;
    map.for_each([&](std::uint64_t key, std::span<const std::byte> value) { std::copy(value.begin(), value.end(), found[key].begin()); });
    return found;
}

TEST(HashMap, AnswersAsTheModelDoes)
{
    auto map = make_map("map one");
    Model model;
    act_as_model(map, model, 0, 1, 100'000);
    expect_contents(map, model, 1);
    EXPECT_TRUE(contents(map) == model);
}

TEST(HashMap, KeepsWhatTwoThreadsPutThere)
{
    auto map = make_map("map two");
    const Model model = act_as_models_in_two_threads(map);
    EXPECT_TRUE(contents(map) == model);
}

TEST(HashMap, IsFoundAgainByItsName)
{
    make_map("map again").put(0, 5, value_of(5, 1));
    auto again = make_map("map again");
    EXPECT_EQ(get(again, 0, 5), value_of(5, 1));
}

/// A tree that overwrites keys and values in place.
class BTreeTest : public testing::Test {
protected:
    void SetUp() override
    {
        if (!E::rolls_back_bytes) {
            GTEST_SKIP() << "not a structure for this engine";
        }
    }
};

TEST_F(BTreeTest, AnswersAsTheModelDoesWithLongValues)
{
    BTree<E> tree("tree one", value_bytes);
    Model model;
    act_as_model(tree, model, 0, 1, 100'000);
    expect_contents(tree, model, 1);
    EXPECT_TRUE(tree.ordered());
}

TEST_F(BTreeTest, KeepsWhatTwoThreadsPutThere)
{
    BTree<E> tree("tree two", value_bytes);
    expect_contents(tree, act_as_models_in_two_threads(tree), 2);
    EXPECT_TRUE(tree.ordered());
}

TEST_F(BTreeTest, KeepsShortValuesInItsLeavesThroughSplitsOfInnerNodes)
{
    BTree<E> tree("tree short", sizeof(std::uint64_t));
    constexpr std::uint64_t keys = 20'000;  // more than 59 * 63: three levels
    for (std::uint64_t i = 0; i < keys; ++i) {
        tree.put(0, key_number(i), std::as_bytes(std::span(&i, 1)));
    }
    EXPECT_TRUE(tree.ordered());
    for (std::uint64_t i = 0; i < keys; ++i) {
        std::uint64_t found = 0;
        ASSERT_TRUE(tree.get(0, key_number(i), std::as_writable_bytes(std::span(&found, 1))));
        ASSERT_EQ(found, i);
    }
    for (const bool ascending : {true, false}) {
        BTree<E> sorted(ascending ? "tree up" : "tree down", sizeof(std::uint64_t));
        for (std::uint64_t i = 0; i < keys; ++i) {
            sorted.put(0, ascending ? i : keys - i, std::as_bytes(std::span(&i, 1)));
        }
        EXPECT_TRUE(sorted.ordered());
    }
}

/// The two lists that are locked hand over hand.
template <class List>
class Lists : public ::testing::Test {};
using BothLists = ::testing::Types<CoupledList<E>, SkipList<E>>;
TYPED_TEST_SUITE(Lists, BothLists);
template <class List>
constexpr const char* name_prefix = std::is_same_v<List, SkipList<E>> ? "skip " : "";

/// The keys in the list's order.
template <class List>
std::vector<std::uint64_t> keys_of(const List& list)
{
    std::vector<std::uint64_t> keys;
    list.for_each([&](std::uint64_t key, std::uint64_t value) {
        keys.push_back(key);
        EXPECT_EQ(value, key_number(key));
    });
    return keys;
}

TYPED_TEST(Lists, AnswersAsTheModelDoesAndIsSorted)
{
    TypeParam list(name_prefix<TypeParam> + std::string("list one"));
    std::set<std::uint64_t> model;
    Random random;
    for (unsigned i = 0; i < 30'000; ++i) {
        const std::uint64_t key = random.below(200);
        switch (random.below(3)) {
        case 0: ASSERT_EQ(list.insert(0, key, key_number(key)), model.insert(key).second); break;
        case 1: ASSERT_EQ(list.remove(0, key), model.erase(key) == 1); break;
        default: ASSERT_EQ(list.find(key), model.contains(key) ? std::optional(key_number(key)) : std::nullopt);
        }
    }
    EXPECT_EQ(keys_of(list), std::vector(model.begin(), model.end()));
    EXPECT_EQ(list.length(), static_cast<std::int64_t>(model.size()));
    EXPECT_TRUE(list.is_whole());
}

TYPED_TEST(Lists, StaysSortedAndCountedWhileTwoThreadsChangeTheSameKeys)
{
    TypeParam list(name_prefix<TypeParam> + std::string("list two"));
    run_two([&](unsigned thread) {
        Random random(thread + 1);
        for (unsigned i = 0; i < 20'000; ++i) {
            const std::uint64_t key = random.below(100);
            random.below(2) == 0 ? list.insert(thread, key, key_number(key)) : list.remove(thread, key);
            ASSERT_EQ(list.find(key).value_or(key_number(key)), key_number(key));
        }
    });
    const std::vector<std::uint64_t> keys = keys_of(list);
    EXPECT_EQ(std::adjacent_find(keys.begin(), keys.end(), std::greater_equal<>()), keys.end());
    EXPECT_EQ(list.length(), static_cast<std::int64_t>(keys.size()));
    EXPECT_TRUE(list.is_whole());
}

TYPED_TEST(Lists, AnswersEachThreadForItsOwnKeys)
{
    TypeParam list(name_prefix<TypeParam> + std::string("list own"));
    run_two([&](unsigned thread) {
        std::set<std::uint64_t> model;
        Random random(thread + 1);
        for (unsigned i = 0; i < 20'000; ++i) {
            const std::uint64_t key = random.below(50) * 2 + thread;
            if (random.below(2) == 0) {
                ASSERT_EQ(list.insert(thread, key, key_number(key)), model.insert(key).second);
            } else {
                ASSERT_EQ(list.remove(thread, key), model.erase(key) == 1);
            }
        }
    });
}

TEST(SingleLockQueue, AnswersAsTheModelDoes)
{
    SingleLockQueue<E> queue("queue one");
    std::deque<std::uint64_t> model;
    Random random;
    for (std::uint64_t i = 0; i < 50'000; ++i) {
        if (random.below(2) == 0) {
            queue.push(0, i);
            model.push_back(i);
            continue;
        }
        std::uint64_t number = 0;
        ASSERT_EQ(queue.pop(0, number), !model.empty());
        if (!model.empty()) {
            ASSERT_EQ(number, model.front());
            model.pop_front();
        }
    }
}

TEST(SingleLockQueue, GivesTheNumbersOfEachThreadOnceAndInTheirOrder)
{
    SingleLockQueue<E> queue("queue two");
    constexpr std::uint64_t count = 50'000;
    std::vector<std::uint64_t> popped[2];
    run_two([&](unsigned thread) {
        std::uint64_t number = 0;
        for (std::uint64_t i = 0; i < count; ++i) {
            queue.push(thread, 2 * i + thread);
            if (queue.pop(thread, number)) {
                popped[thread].push_back(number);
            }
        }
    });
    std::set<std::uint64_t> all;
    for (const std::vector<std::uint64_t>& numbers : popped) {
        std::uint64_t least[2] = {0, 0};
        for (const std::uint64_t number : numbers) {
            ASSERT_GE(number, least[number % 2]);
            least[number % 2] = number + 1;
            ASSERT_TRUE(all.insert(number).second) << number << " came twice";
        }
    }
    for (std::uint64_t number = 0; queue.pop(0, number);) {
        ASSERT_TRUE(all.insert(number).second) << number << " came twice";
    }
    EXPECT_EQ(all.size(), 2 * count);
}

}  // namespace
}  // namespace bench

// The sharded map: its shards are objects of their own; another number of shards, a lost shard and foreign names are refused.

#include <map>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "fake_runtime.hpp"
#include "stillpoint/durable.hpp"

namespace durable = stillpoint::durable;
namespace pronto = stillpoint::pronto;

namespace {

class ShardedMaps : public testing::Test {
protected:
    void TearDown() override
    {
        fake_runtime::forget_all();
        EXPECT_EQ(fake_runtime::blocks_not_freed(), 0U);
    }
    static void fill(durable::sharded_string_map& map, int count)
    {
        for (int number = 0; number < count; ++number) {
            map.put("key " + std::to_string(number), std::to_string(number));
        }
    }
    /// The message of a refused opening; empty: it opens.
    template <class... Arguments>
    static std::string refusal_of(const Arguments&... arguments)
    {
        try {
            const durable::sharded_string_map map(arguments...);
            return "";
        } catch (const pronto::error& refused) {
            return refused.what();
        }
    }
};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(ShardedMaps, WorkAsOneMap)
{
    durable::sharded_string_map map("map", 4);
    EXPECT_EQ(map.shard_count(), 4U);
    EXPECT_TRUE(map.empty());
    EXPECT_TRUE(map.put("a", "1"));
    EXPECT_FALSE(map.put("a", "2"));
    EXPECT_EQ(map.get("a"), "2");
    EXPECT_EQ(map.get("b"), std::nullopt);
    EXPECT_TRUE(map.contains("a"));
    EXPECT_FALSE(map.contains("b"));
    EXPECT_FALSE(map.erase("b"));
    EXPECT_TRUE(map.erase("a"));
    fill(map, 100);
    EXPECT_EQ(map.size(), 100U);
    std::map<std::string, std::string> seen;
    map.for_each([&](std::string_view key, std::string_view value) { seen.emplace(key, value); });
    EXPECT_EQ(seen.size(), 100U);
    EXPECT_EQ(seen.at("key 42"), "42");
    std::string value;
    EXPECT_TRUE(map.visit("key 7", [&](std::string_view found) { value = found; }));
    EXPECT_EQ(value, "7");
    map.clear();
    EXPECT_TRUE(map.empty());
}

TEST_F(ShardedMaps, EachShardHasALogOfItsOwnThatMakesItAgain)
{
    durable::sharded_string_map map("map", 4);
    fill(map, 200);
    map.erase("key 3");
    std::size_t logged = 0;
    for (const std::string& name : {std::string("map"), std::string("map#1"), std::string("map#2"), std::string("map#3")}) {
        const std::size_t own = fake_runtime::log_of(name).size();
        EXPECT_GT(own, 20U) << name;
        logged += own;
        EXPECT_TRUE(pronto::get_object<durable::string_map_shard>(name, 0U, 0U) ==
                    *static_cast<const durable::string_map_shard*>(fake_runtime::replayed(name)));
    }
    EXPECT_EQ(logged, 202U);  // The first one's log also says that the map is whole.
}

TEST_F(ShardedMaps, AreFoundAgainWithOrWithoutTheirNumberOfShards)
{
    durable::sharded_string_map made("map", 3);
    fill(made, 50);
    const durable::sharded_string_map found("map");
    const durable::sharded_string_map counted("map", 3);
    EXPECT_EQ(found.shard_count(), 3U);
    EXPECT_EQ(found.size(), 50U);
    EXPECT_EQ(counted.get("key 49"), "49");
    EXPECT_EQ(durable::sharded_string_map("other").shard_count(), durable::sharded_string_map::shards_by_default);
}

TEST_F(ShardedMaps, AnotherNumberOfShardsIsRefusedWithTheNextStep)
{
    durable::sharded_string_map map("map", 4);
    const std::string refusal = refusal_of("map", 8U);
    EXPECT_TRUE(contains(refusal, "was made with 4 shards, not 8") && contains(refusal, "open it without a number")) << refusal;
    EXPECT_TRUE(contains(refusal_of("map", 0U), "1 to 256 shards"));
    EXPECT_TRUE(contains(refusal_of("map", 257U), "1 to 256 shards"));
}

TEST_F(ShardedMaps, NamesThatDoNotFitAreRefused)
{
    EXPECT_TRUE(contains(refusal_of(std::string()), "1 to 75 bytes"));
    EXPECT_TRUE(contains(refusal_of(std::string(76, 'n')), "1 to 75 bytes"));
    EXPECT_EQ(refusal_of(std::string(75, 'n'), 2U), "");
}

TEST_F(ShardedMaps, AShardIsNoMapOfItsOwnAndNoObjectOfTheProgramIsAShard)
{
    durable::sharded_string_map map("map", 4);
    EXPECT_TRUE(contains(refusal_of("map#2"), "is shard 2 of 4"));
    EXPECT_THROW(durable::sharded_string_map::delete_map("map#2"), pronto::error);
    EXPECT_THROW(static_cast<void>(pronto::get_object<durable::string_map>("map#2")), pronto::other_type);
    EXPECT_THROW(static_cast<void>(pronto::get_object<durable::string_map>("map")), pronto::other_type);
    pronto::get_object<durable::string_map>("mine#1").put("a", "1");
    EXPECT_THROW(durable::sharded_string_map("mine", 2), pronto::other_type);
    EXPECT_EQ(pronto::get_object<durable::string_map>("mine#1").get("a"), "1");
}

TEST_F(ShardedMaps, ACreationThatEndedBetweenTwoShardsGoesOn)
{
    static_cast<void>(pronto::get_object<durable::string_map_shard>("map", 0U, 4U));
    static_cast<void>(pronto::get_object<durable::string_map_shard>("map#1", 1U, 4U));
    EXPECT_TRUE(contains(refusal_of("map", 8U), "was made with 4 shards"));
    durable::sharded_string_map map("map", 4);
    fill(map, 50);
    EXPECT_EQ(durable::sharded_string_map("map").size(), 50U);
}

TEST_F(ShardedMaps, ALostShardIsAnErrorAndNoEmptyShard)
{
    durable::sharded_string_map map("map", 4);
    fill(map, 50);
    EXPECT_TRUE(pronto::delete_object("map#3"));
    EXPECT_TRUE(contains(refusal_of("map"), "has lost the shard \"map#3\""));
    EXPECT_TRUE(durable::sharded_string_map::delete_map("map"));
    EXPECT_EQ(refusal_of("map", 5U), "");
}

TEST_F(ShardedMaps, ADeletionThatEndedHalfwayGoesOnAndTheNameIsFree)
{
    EXPECT_FALSE(durable::sharded_string_map::delete_map("map"));
    durable::sharded_string_map old("map", 4);
    fill(old, 50);
    pronto::get_object<durable::string_map_shard>("map", 0U, 4U).enter(durable::string_map_shard::phase::deleting);
    EXPECT_TRUE(pronto::delete_object("map#3"));
    const durable::sharded_string_map map("map", 2);
    EXPECT_EQ(map.shard_count(), 2U);
    EXPECT_TRUE(map.empty());
    EXPECT_EQ(pronto::find_object<durable::string_map_shard>("map#2"), nullptr);
    EXPECT_TRUE(durable::sharded_string_map::delete_map("map"));
    EXPECT_EQ(pronto::find_object<durable::string_map_shard>("map"), nullptr);
}

TEST_F(ShardedMaps, UpdatesOfManyThreadsAreOneStepEach)
{
    durable::sharded_string_map counts("counts", 4);
    constexpr int threads = 4;
    constexpr int rounds = 300;
    std::vector<std::thread> running;
    for (int thread = 0; thread < threads; ++thread) {
        running.emplace_back([counts]() mutable {
            for (int round = 0; round < rounds; ++round) {
                counts.update("key " + std::to_string(round % 10), [](const std::optional<std::string>& before) {
                    return std::optional<std::string>(std::to_string(std::stoi(before.value_or("0")) + 1));
                });
            }
        });
    }
    for (std::thread& thread : running) {
        thread.join();
    }
    for (int key = 0; key < 10; ++key) {
        EXPECT_EQ(counts.get("key " + std::to_string(key)), std::to_string(threads * rounds / 10));
    }
    EXPECT_EQ(counts.update("key 0", [](const auto&) { return std::optional<std::string>(); }), std::nullopt);
    EXPECT_FALSE(counts.contains("key 0"));
}

}  // namespace

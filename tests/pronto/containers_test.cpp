// The durable containers do what the standard's do, and their logs, run again on another object, make the same object.

#include <array>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "fake_runtime.hpp"
#include "stillpoint/durable.hpp"

namespace durable = stillpoint::durable;
namespace pronto = stillpoint::pronto;

namespace {

const std::string long_text(100, 'x');

class Containers : public testing::Test {
protected:
    void TearDown() override
    {
        fake_runtime::forget_all();
        EXPECT_EQ(fake_runtime::blocks_not_freed(), 0U);
    }
    template <class T>
    static void expect_same_when_replayed(const T& object, const std::string& name)
    {
        EXPECT_TRUE(object == *static_cast<const T*>(fake_runtime::replayed(name)));
    }
};

template <class T>
std::vector<std::string> texts_of(const T& range)
{
    std::vector<std::string> texts;
    for (const auto& text : range) {
        texts.emplace_back(text.begin(), text.end());
    }
    return texts;
}

TEST_F(Containers, VectorOfStrings)
{
    auto& words = pronto::get_object<durable::vector<std::string>>("words");
    words.push_back("one");
    words.push_back(long_text);
    words.insert(0, "nought");
    words.set(1, std::string("uno"));
    words.push_back("last");
    words.pop_back();
    EXPECT_EQ(texts_of(words), (std::vector<std::string>{"nought", "uno", long_text}));
    words.erase(0);
    words.resize(4);
    EXPECT_EQ(texts_of(words), (std::vector<std::string>{"uno", long_text, "", ""}));
    EXPECT_THROW(words.erase(4), std::out_of_range);
    EXPECT_THROW(words.set(4, ""), std::out_of_range);
    expect_same_when_replayed(words, "words");
    words.clear();
    EXPECT_THROW(words.pop_back(), std::out_of_range);
    expect_same_when_replayed(words, "words");
}

TEST_F(Containers, VectorOfNumbersKeepsTheOrderOfItsLog)
{
    auto& numbers = pronto::get_object<durable::vector<std::uint64_t>>("numbers");
    for (std::uint64_t number = 0; number < 100; ++number) {
        numbers.push_back(number * number);
    }
    numbers.erase(50);
    EXPECT_EQ(numbers.size(), 99U);
    EXPECT_EQ(numbers[50], 51U * 51U);
    EXPECT_EQ(fake_runtime::log_of("numbers").size(), 101U);
    expect_same_when_replayed(numbers, "numbers");
}

TEST_F(Containers, MapIsAStdMap)
{
    auto& ages = pronto::get_object<durable::map<std::string, int>>("ages");
    EXPECT_TRUE(ages.insert("ada", 36));
    EXPECT_FALSE(ages.insert("ada", 37));
    EXPECT_TRUE(ages.insert_or_assign(long_text, 1));
    EXPECT_FALSE(ages.insert_or_assign("ada", 38));
    EXPECT_EQ(ages.at("ada"), 38);
    EXPECT_THROW(static_cast<void>(ages.at("bob")), std::out_of_range);
    EXPECT_TRUE(ages.contains(long_text));
    EXPECT_EQ(ages.find("bob"), ages.end());
    EXPECT_EQ(ages.begin()->first, std::string_view("ada"));
    const std::size_t logged = fake_runtime::log_of("ages").size();
    EXPECT_FALSE(ages.erase("bob"));
    EXPECT_EQ(fake_runtime::log_of("ages").size(), logged) << "what changes nothing is not logged";
    EXPECT_TRUE(ages.erase("ada"));
    EXPECT_EQ(ages.size(), 1U);
    expect_same_when_replayed(ages, "ages");
}

TEST_F(Containers, MapOfBytes)
{
    using Key = std::array<char, 32>;
    auto& blobs = pronto::get_object<durable::map<Key, std::vector<unsigned char>>>("blobs");
    blobs.insert(Key{'b'}, std::vector<unsigned char>(4096, 7));
    blobs.insert_or_assign(Key{'a'}, std::vector<unsigned char>{1, 2, 3});
    EXPECT_EQ(blobs.at(Key{'b'}).size(), 4096U);
    EXPECT_EQ(blobs.begin()->second.size(), 3U);
    expect_same_when_replayed(blobs, "blobs");
}

TEST_F(Containers, UnorderedMapIsAStdUnorderedMap)
{
    auto& texts = pronto::get_object<durable::unordered_map<std::string, std::string>>("texts");
    texts.reserve(64);
    for (int number = 0; number < 200; ++number) {
        EXPECT_TRUE(texts.insert("key" + std::to_string(number), long_text));
    }
    EXPECT_FALSE(texts.insert("key7", ""));
    EXPECT_FALSE(texts.insert_or_assign("key7", "seven"));
    EXPECT_TRUE(texts.erase("key8"));
    EXPECT_FALSE(texts.erase("key8"));
    EXPECT_EQ(texts.at("key7"), "seven");
    EXPECT_EQ(texts.size(), 199U);
    expect_same_when_replayed(texts, "texts");
}

TEST_F(Containers, PriorityQueueGivesTheGreatestFirst)
{
    auto& greatest = pronto::get_object<durable::priority_queue<std::string>>("greatest");
    auto& least = pronto::get_object<durable::priority_queue<std::pair<int, int>, std::greater<>>>("least");
    for (const int number : {5, 9, 1, 7}) {
        greatest.push(std::to_string(number) + long_text);
        least.push({number, -number});
    }
    EXPECT_EQ(greatest.pop(), "9" + long_text);
    EXPECT_EQ(greatest.top(), "7" + long_text);
    EXPECT_EQ(least.pop(), (std::pair{1, -1}));
    EXPECT_EQ(least.size(), 3U);
    expect_same_when_replayed(greatest, "greatest");
    expect_same_when_replayed(least, "least");
    least.clear();
    EXPECT_THROW(least.pop(), std::out_of_range);
    EXPECT_THROW(static_cast<void>(least.top()), std::out_of_range);
}

TEST_F(Containers, QueueGivesTheOldestFirst)
{
    auto& texts = pronto::get_object<durable::queue<std::string>>("texts");
    EXPECT_EQ(texts.pop(), std::nullopt);
    EXPECT_EQ(texts.front(), std::nullopt);
    EXPECT_TRUE(texts.empty());
    texts.push("one");
    texts.push(long_text);
    texts.push("three");
    EXPECT_EQ(texts.pop(), "one");
    EXPECT_EQ(texts.front(), long_text);
    EXPECT_EQ(texts.size(), 2U);
    std::vector<std::string> seen;
    texts.for_each([&](const pronto::string& text) { seen.emplace_back(text.begin(), text.end()); });
    EXPECT_EQ(seen, (std::vector<std::string>{long_text, "three"}));
    expect_same_when_replayed(texts, "texts");
    texts.clear();
    EXPECT_TRUE(texts.empty());
    expect_same_when_replayed(texts, "texts");
}

TEST_F(Containers, QueueKeepsTheOrderOfEachThread)
{
    constexpr std::uint64_t each = 2000;
    constexpr std::uint64_t producers = 3;
    auto& numbers = pronto::get_object<durable::queue<std::uint64_t>>("numbers");
    std::vector<std::thread> threads;
    for (std::uint64_t producer = 0; producer < producers; ++producer) {
        threads.emplace_back([&numbers, producer] {
            for (std::uint64_t i = 0; i < each; ++i) {
                numbers.push(producer * each + i);
            }
        });
    }
    std::array<std::uint64_t, producers> next{};
    for (std::uint64_t taken = 0; taken < each * producers;) {
        if (const auto number = numbers.pop(); number) {
            EXPECT_EQ(*number % each, next[*number / each]++);
            ++taken;
        }
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_TRUE(numbers.empty());
    expect_same_when_replayed(numbers, "numbers");
}

TEST_F(Containers, StringMapCommitsEarlyAndItsReadersWait)
{
    auto& texts = pronto::get_object<durable::string_map>("texts");
    const unsigned early = fake_runtime::early_commits();
    EXPECT_TRUE(texts.put("a", "1"));
    EXPECT_FALSE(texts.put("a", long_text));
    EXPECT_TRUE(texts.put("b", "2"));
    EXPECT_TRUE(texts.erase("b"));
    EXPECT_EQ(fake_runtime::early_commits(), early + 4);
    const unsigned waits = fake_runtime::waits_of_readers();
    EXPECT_EQ(texts.get("a"), long_text);
    EXPECT_EQ(texts.get("b"), std::nullopt);
    EXPECT_FALSE(texts.erase("b"));
    EXPECT_EQ(texts.size(), 1U);
    EXPECT_EQ(fake_runtime::waits_of_readers(), waits + 4);
    EXPECT_EQ(fake_runtime::log_of("texts").size(), 4U);
    expect_same_when_replayed(texts, "texts");
    texts.clear();
    EXPECT_TRUE(texts.empty());
    expect_same_when_replayed(texts, "texts");
}

TEST_F(Containers, StringMapUpdatesOfManyThreadsAreOneStepEach)
{
    auto& counts = pronto::get_object<durable::string_map>("counts");
    constexpr int threads = 4;
    constexpr int rounds = 500;
    std::vector<std::thread> running;
    for (int thread = 0; thread < threads; ++thread) {
        running.emplace_back([&] {
            for (int round = 0; round < rounds; ++round) {
                counts.update(round % 2 == 0 ? "even" : "odd", [](const std::optional<std::string>& before) {
                    return std::optional<std::string>(std::to_string(std::stoi(before.value_or("0")) + 1));
                });
            }
        });
    }
    for (std::thread& thread : running) {
        thread.join();
    }
    EXPECT_EQ(counts.get("even"), std::to_string(threads * rounds / 2));
    EXPECT_EQ(counts.get("odd"), std::to_string(threads * rounds / 2));
    EXPECT_EQ(counts.update("odd", [](const auto&) { return std::optional<std::string>(); }), std::nullopt);
    EXPECT_FALSE(counts.contains("odd"));
    std::map<std::string, std::string> seen;
    counts.for_each([&](std::string_view key, std::string_view value) { seen.emplace(key, value); });
    EXPECT_EQ(seen.size(), 1U);
    expect_same_when_replayed(counts, "counts");
}

TEST_F(Containers, StringMapIsReadWithoutACopy)
{
    auto& texts = pronto::get_object<durable::string_map>("texts");
    texts.put("a", long_text);
    const unsigned waits = fake_runtime::waits_of_readers();
    std::string seen;
    EXPECT_TRUE(texts.visit("a", [&](std::string_view value) { seen = value; }));
    EXPECT_EQ(seen, long_text);
    EXPECT_FALSE(texts.visit("b", [&](std::string_view) { seen.clear(); }));
    EXPECT_EQ(seen, long_text);
    EXPECT_EQ(fake_runtime::waits_of_readers(), waits + 2);
}

TEST_F(Containers, TheirNamesDoNotDependOnTheCompiler)
{
    EXPECT_EQ((std::string_view(pronto::class_name<durable::map<std::string, std::vector<int>>>())), "durable::map<string,vector<i32>>");
    EXPECT_EQ((std::string_view(pronto::class_name<durable::unordered_map<long, double>>())), "durable::unordered_map<i64,f64>");
    EXPECT_EQ((std::string_view(pronto::class_name<durable::priority_queue<int, std::greater<>>>())),
              "durable::priority_queue<i32,greater>");
    EXPECT_EQ((std::string_view(pronto::class_name<durable::queue<std::string>>())), "durable::queue<string>");
    EXPECT_EQ((std::string_view(pronto::class_name<durable::vector<std::pair<bool, float>>>())), "durable::vector<pair<bool,f32>>");
}

}  // namespace

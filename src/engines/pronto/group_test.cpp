// Operations that share a fence, and operations of many threads that one of them does.

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "engines/pronto/pronto_engine.hpp"
#include "stillpoint/durable/queue.hpp"
#include "stillpoint/durable/vector.hpp"
#include "support/crashing_program.hpp"
#include "support/pool_of_format.hpp"
#include "support/temporary_directory.hpp"

namespace stillpoint::pronto {
namespace {

using test::crash;
using test::killed;
using Queue = durable::queue<std::uint64_t>;

/// Fences until now, and those of the snapshot that this takes: figures of media are told with each.
std::uint64_t fences_with_a_snapshot()
{
    snapshot();
    std::uint64_t count = 0;
    EXPECT_EQ(sp_statistic("fences", &count), SP_OK);
    return count;
}

/// How many `body` needs besides.
std::uint64_t fences_of(const std::function<void()>& body)
{
    const std::uint64_t first = fences_with_a_snapshot();
    const std::uint64_t before = fences_with_a_snapshot();
    body();
    return fences_with_a_snapshot() - before - (before - first);
}

class Group : public ::testing::TestWithParam<const char*> {
protected:
    int run(const std::function<int()>& body)
    {
        return test::run_with_pool(pool_, "engine=pronto interval_ms=3600000 " + std::string(GetParam()), body);
    }
    static bool is_on_memory() { return std::string(GetParam()).find("memory") != std::string::npos; }

    test::TemporaryDirectory directory_;
    std::string pool_ = directory_.file("test.pool");
};

INSTANTIATE_TEST_SUITE_P(Media, Group,
                         ::testing::Values("medium=memory", "medium=memory verify_replay=1", "medium=file durability=process"),
                         [](const auto& medium) { return "number" + std::to_string(medium.index); });

TEST_P(Group, SharesAFenceAndIsDurableAfterItsCommit)
{
    static constexpr std::uint64_t operations = 30;
    ASSERT_EQ(run([]() -> int {
                  auto& numbers = get_object<durable::vector<std::uint64_t>>("numbers");
                  numbers.push_back(0);
                  const std::uint64_t fences = fences_of([&] {
                      group filling;
                      for (std::uint64_t i = 1; i < operations; ++i) {
                          numbers.push_back(i);
                      }
                      filling.commit();
                  });
                  if (is_on_memory()) {
                      EXPECT_LE(fences, 2U) << "one, and that of a new chunk";
                      EXPECT_GE(fences, 1U);
                  }
                  EXPECT_EQ(numbers_of(numbers).committed, operations);
                  EXPECT_EQ(numbers_of(numbers).durable, operations);
                  if (::testing::Test::HasFailure()) {
                      return 1;
                  }
                  crash();
              }),
              killed);
    ASSERT_EQ(run([]() -> int {
                  const auto& numbers = get_object<durable::vector<std::uint64_t>>("numbers");
                  EXPECT_EQ(numbers.size(), operations);
                  EXPECT_EQ(numbers.back(), operations - 1);
                  return ::testing::Test::HasFailure() ? 1 : 0;
              }),
              0);
}

TEST_P(Group, TakesMoreThanItHasLinesForAndLongArgumentsAndSeveralObjects)
{
    static constexpr std::uint64_t operations = 500;
    ASSERT_EQ(run([]() -> int {
                  auto& texts = get_object<durable::vector<std::string>>("texts");
                  auto& numbers = get_object<durable::vector<std::uint64_t>>("numbers");
                  group filling;
                  for (std::uint64_t i = 0; i < operations; ++i) {
                      texts.push_back(std::string(i % 7 == 0 ? 300'000 : i % 90, 'x'));
                      numbers.push_back(i);
                      numbers.push_back(i);
                      if (i % 100 == 0) {
                          snapshot();
                      }
                  }
                  filling.commit();
                  crash();
              }),
              killed);
    ASSERT_EQ(run([]() -> int {
                  const auto& texts = get_object<durable::vector<std::string>>("texts");
                  EXPECT_EQ(texts.size(), operations);
                  EXPECT_EQ(texts[7].size(), 300'000U);
                  EXPECT_EQ(texts[13].size(), 13U);
                  EXPECT_EQ(get_object<durable::vector<std::uint64_t>>("numbers").size(), 2 * operations);
                  return ::testing::Test::HasFailure() ? 1 : 0;
              }),
              0);
}

TEST_P(Group, CombinesOperationsOfManyThreads)
{
    static constexpr std::uint64_t each = 3000;
    static constexpr std::uint64_t threads = 4;
    ASSERT_EQ(run([]() -> int {
                  auto& numbers = get_object<Queue>("numbers");
                  std::vector<std::thread> all;
                  std::atomic<std::uint64_t> popped{0};
                  for (std::uint64_t thread = 0; thread < threads; ++thread) {
                      all.emplace_back([&numbers, &popped, thread] {
                          for (std::uint64_t i = 0; i < each; ++i) {
                              numbers.push(thread * each + i);
                              if (i % 3 == 0 && numbers.pop()) {
                                  ++popped;
                              }
                              if (i % 1000 == 500) {
                                  snapshot();
                              }
                          }
                      });
                  }
                  for (std::thread& thread : all) {
                      thread.join();
                  }
                  get_object<Queue>("popped").push(popped);
                  crash();
              }),
              killed);
    ASSERT_EQ(run([]() -> int {
                  auto& numbers = get_object<Queue>("numbers");
                  EXPECT_EQ(numbers.size() + get_object<Queue>("popped").front().value(), threads * each);
                  std::vector<std::uint64_t> next(threads, 0);
                  numbers.for_each([&](std::uint64_t number) {
                      EXPECT_GE(number % each + 1, next[number / each] + 1);
                      next[number / each] = number % each + 1;
                  });
                  return ::testing::Test::HasFailure() ? 1 : 0;
              }),
              0);
}

/// A class whose operations throw, call each other, and are mixed with some that are not combined.
class Mixed : public object<Mixed> {
public:
    static constexpr char type_name[] = "mixed";
    static constexpr auto methods()
    {
        return pronto::methods(method<&Mixed::add>("add", promise::unchanged_by_exception), method<&Mixed::add_twice>("add_twice"),
                               method<&Mixed::note>("note"));
    }
    std::uint64_t add(std::uint64_t number)
    {
        return combine<&Mixed::add>(number, [&] {
            if (number == 0) {
                throw std::invalid_argument("nothing to add");
            }
            return total_ += number;
        });
    }
    void add_twice(std::uint64_t number)
    {
        combine<&Mixed::add_twice>(number, [&] {
            add(number);
            add(number);
        });
    }
    void note(std::uint64_t slot)
    {
        run<&Mixed::note>(slot, [&] { ++noted_[slot]; });
    }
    [[nodiscard]] std::uint64_t total() const
    {
        return combine_read([&] { return total_; });
    }
    [[nodiscard]] std::uint64_t noted(std::uint64_t slot) const { return noted_[slot]; }
    bool operator==(const Mixed&) const = default;

private:
    std::uint64_t total_ = 0;
    std::array<std::uint64_t, 8> noted_{};
};

TEST_P(Group, PassesExceptionsOnAndNumbersOthersInBetween)
{
    static constexpr std::uint64_t each = 1000;
    static constexpr std::uint64_t threads = 3;
    ASSERT_EQ(run([]() -> int {
                  auto& mixed = get_object<Mixed>("mixed");
                  std::vector<std::thread> all;
                  std::atomic<std::uint64_t> thrown{0};
                  for (std::uint64_t thread = 0; thread < threads; ++thread) {
                      all.emplace_back([&mixed, &thrown, thread] {
                          for (std::uint64_t i = 0; i < each; ++i) {
                              try {
                                  mixed.add(i % 10);
                              } catch (const std::invalid_argument&) {
                                  ++thrown;
                              }
                              mixed.note(thread);
                              if (i % 100 == 0) {
                                  mixed.add_twice(1);
                              }
                          }
                      });
                  }
                  for (std::thread& thread : all) {
                      thread.join();
                  }
                  EXPECT_EQ(thrown, threads * each / 10);
                  if (::testing::Test::HasFailure()) {
                      return 1;
                  }
                  crash();
              }),
              killed);
    ASSERT_EQ(run([]() -> int {
                  const auto& mixed = get_object<Mixed>("mixed");
                  EXPECT_EQ(mixed.total(), threads * (each / 10 * 45 + each / 100 * 2));
                  EXPECT_EQ(mixed.noted(2), each);
                  return ::testing::Test::HasFailure() ? 1 : 0;
              }),
              0);
}

/// A pool of a layout that knows no entries which share a fence.
class GroupInAnOlderPool : public ::testing::TestWithParam<std::size_t> {
protected:
    test::TemporaryDirectory directory_;
    const std::string pool_ = directory_.file("older.pool");
};

TEST_P(GroupInAnOlderPool, HasAFenceForEachOperationAndIsDurableAfterItsCommit)
{
    static constexpr std::uint64_t operations = 30;
    ASSERT_NO_FATAL_FAILURE(test::make_pool_of_format(pool_, driver().more_formats[GetParam()], Durability::power));
    const std::string options = "engine=pronto medium=memory durability=power interval_ms=3600000 pool_max_mb=64";
    ASSERT_EQ(test::run_with_pool(pool_, options,
                                  []() -> int {
                                      auto& numbers = get_object<Queue>("numbers");
                                      EXPECT_GE(fences_of([&] {
                                                    group filling;
                                                    for (std::uint64_t i = 0; i < operations; ++i) {
                                                        numbers.push(i);
                                                    }
                                                    filling.commit();
                                                }),
                                                operations);
                                      if (::testing::Test::HasFailure()) {
                                          return 1;
                                      }
                                      crash();
                                  }),
              killed);
    ASSERT_EQ(test::run_with_pool(pool_, options,
                                  []() -> int {
                                      auto& numbers = get_object<Queue>("numbers");
                                      for (std::uint64_t i = 0; i < operations; ++i) {
                                          EXPECT_EQ(numbers.pop(), i);
                                      }
                                      EXPECT_FALSE(numbers.pop());
                                      return ::testing::Test::HasFailure() ? 1 : 0;
                                  }),
              0);
}
INSTANTIATE_TEST_SUITE_P(Layouts, GroupInAnOlderPool, ::testing::Range(std::size_t{0}, driver().more_formats.size()));

}  // namespace
}  // namespace stillpoint::pronto

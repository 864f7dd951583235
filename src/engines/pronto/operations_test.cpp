// Operations on objects through the C interface: what is acknowledged survives a kill, what is refused says why.

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "engines/pronto/commit_order.hpp"
#include "os/clock.hpp"
#include "os/futex.hpp"
#include "runtime/fase.hpp"
#include "stillpoint/pronto.h"
#include "support/crashing_program.hpp"
#include "support/sum_object.hpp"
#include "support/temporary_directory.hpp"

namespace stillpoint::pronto {
namespace {

using test::crash;
using test::killed;
using test::run_with_pool;

std::uint64_t ballast_of_all(std::uint64_t numbers, std::size_t ballast)
{
    std::uint64_t sum = 0;
    for (std::uint64_t number = 1; number <= numbers; ++number) {
        sum += number % 251 * ballast;
    }
    return sum;
}

class ProntoOperations : public ::testing::TestWithParam<const char*> {
protected:
    int run(const std::function<int()>& body, const std::string& more = "pool_size_mb=16")
    {
        return run_with_pool(pool_, "engine=pronto interval_ms=3600000 " + std::string(GetParam()) + " " + more, [&] {
            try {
                return body();
            } catch (const std::exception& error) {
                std::fprintf(stderr, "%s\n", error.what());
                return 98;
            }
        });
    }
    test::TemporaryDirectory directory_;
    std::string pool_ = directory_.file("test.pool");
};

INSTANTIATE_TEST_SUITE_P(Media, ProntoOperations,
                         ::testing::Values("medium=memory pronto_logging=sync", "medium=memory pronto_logging=async",
                                           "medium=file durability=process"),
                         [](const auto& medium) { return "number" + std::to_string(medium.index); });

TEST_P(ProntoOperations, SurviveAKillOneByOne)
{
    constexpr std::uint64_t each_run = 50;
    for (std::uint64_t runs = 0; runs < 4; ++runs) {
        ASSERT_EQ(run([&] {
                      Sum& sum = open_sum();
                      EXPECT_EQ(sum.count, runs * each_run);
                      EXPECT_EQ(sum.ballast, ballast_of_all(runs * each_run, 700));
                      for (std::uint64_t i = 1; i <= each_run; ++i) {
                          EXPECT_EQ(do_add(sum, runs * each_run + i, 700), SP_OK);
                      }
                      std::uint64_t committed = 0;
                      std::uint64_t durable = 0;
                      EXPECT_EQ(sp_pronto_numbers(&sum, &committed, &durable), SP_OK);
                      EXPECT_EQ(committed, (runs + 1) * each_run);
                      EXPECT_EQ(durable, committed);
                      if (::testing::Test::HasFailure()) {
                          return 1;
                      }
                      crash();
                  }),
                  killed);
    }
}

TEST_P(ProntoOperations, WrapAroundTheLogWhileThreadsHoldALockAroundThem)
{
    constexpr std::uint64_t threads = 3;
    constexpr std::uint64_t operations = 12'000;  // Each has 2 KiB: several times the log.
    ASSERT_EQ(run(
                  [&] {
                      Sum& sum = open_sum();
                      static std::mutex lock;  // The thread that waits for room in the log holds it.
                      std::vector<std::thread> workers;
                      for (std::uint64_t thread = 0; thread < threads; ++thread) {
                          workers.emplace_back([&] {
                              for (std::uint64_t i = 0; i < operations; ++i) {
                                  const std::lock_guard hold(lock);
                                  EXPECT_EQ(do_add(sum, 1, 2000), SP_OK) << sp_last_error();
                              }
                          });
                      }
                      for (std::thread& worker : workers) {
                          worker.join();
                      }
                      EXPECT_EQ(sum.count, threads * operations);
                      if (::testing::Test::HasFailure()) {
                          return 1;
                      }
                      crash();
                  },
                  "pool_size_mb=4"),
              killed);
    EXPECT_EQ(run([&] { return open_sum().count == threads * operations ? 0 : 1; }), 0);
}

TEST_P(ProntoOperations, WithMoreArgumentsThanAChunkAreLoggedInParts)
{
    constexpr std::size_t large = 700'000;
    ASSERT_EQ(run([] {
                  Sum& sum = open_sum();
                  EXPECT_EQ(do_add(sum, 1, large), SP_OK) << sp_last_error();
                  EXPECT_EQ(do_add(sum, 2, 10), SP_OK);
                  EXPECT_EQ(do_add(sum, 3, 100'000'000), SP_E_INVALID_ARGUMENT);
                  if (::testing::Test::HasFailure()) {
                      return 1;
                  }
                  crash();
              }),
              killed);
    EXPECT_EQ(run([] {
                  const Sum& sum = open_sum();
                  EXPECT_EQ(sum.count, 2U);
                  EXPECT_EQ(sum.ballast, large + 2 * 10);
                  return ::testing::Test::HasFailure() ? 1 : 0;
              }),
              0);
}

TEST_P(ProntoOperations, EndedByAnExceptionAreRolledOutOfTheLogOrRefuseTheObject)
{
    ASSERT_EQ(run([] {
                  Sum& sum = open_sum();
                  Sum& other = open_sum("other");
                  EXPECT_EQ(do_add(sum, 1), SP_OK);
                  const auto undo_and_throw = [&] {
                      --sum.count;
                      sum.total -= 5;
                      throw std::runtime_error("undone");
                  };
                  EXPECT_THROW(do_add(sum, 5, 0, add_or_throw, undo_and_throw), std::runtime_error);
                  EXPECT_EQ(do_add(sum, 2), SP_OK);
                  EXPECT_EQ(sp_pronto_snapshot(), SP_OK);
                  EXPECT_EQ(do_add(sum, 3), SP_OK);
                  EXPECT_THROW(do_add(sum, 7, 0, add, [] { throw std::runtime_error("half done"); }), std::runtime_error);
                  EXPECT_EQ(do_add(sum, 4), SP_E_OBJECT_REFUSED);
                  EXPECT_NE(sp_pronto_snapshot(), SP_OK);
                  EXPECT_EQ(do_add(other, 9), SP_OK) << sp_last_error();
                  return ::testing::Test::HasFailure() ? 1 : 0;  // A normal end: what was refused must not become durable.
              }),
              0);
    EXPECT_EQ(run([] {
                  const Sum& sum = open_sum();
                  EXPECT_EQ(sum.count, 3U);
                  EXPECT_EQ(sum.total, 1U + 2 + 3);
                  EXPECT_EQ(open_sum("other").total, 9U);
                  return ::testing::Test::HasFailure() ? 1 : 0;
              }),
              0);
}

TEST_P(ProntoOperations, InsideAnotherOneAreItsOwnOrRefused)
{
    EXPECT_EQ(run([] {
                  Sum& sum = open_sum();
                  Sum& other = open_sum("other");
                  EXPECT_EQ(do_add(sum, 1, 0, add,
                                   [&] {
                                       EXPECT_EQ(do_add(sum, 2), SP_OK);
                                       EXPECT_EQ(do_add(other, 3), SP_E_INVALID_ARGUMENT);
                                   }),
                            SP_OK);
                  std::uint64_t committed = 0;
                  EXPECT_EQ(sp_pronto_numbers(&sum, &committed, nullptr), SP_OK);
                  EXPECT_EQ(committed, 1U);
                  Sum elsewhere{};
                  EXPECT_EQ(do_add(elsewhere, 1), SP_E_INVALID_ARGUMENT);
                  return ::testing::Test::HasFailure() ? 1 : 0;
              }),
              0);
}

TEST_P(ProntoOperations, ThatDependOnMoreThanTheObjectAreFound)
{
    EXPECT_EQ(run(
                  [] {
                      Sum& sum = open_sum();
                      EXPECT_EQ(do_add(sum, 1), SP_OK);
                      sp_pronto_operation operation;
                      int error = SP_OK;
                      EXPECT_NE(sp_pronto_begin(&operation, &sum, peek, 0, &error), nullptr);
                      outside = 1;
                      sum.from_elsewhere = outside;
                      outside = 2;  // As the time passes.
                      EXPECT_EQ(sp_pronto_commit(&operation), SP_E_NOT_DETERMINISTIC);
                      EXPECT_NE(std::string(sp_last_error()).find("peek"), std::string::npos) << sp_last_error();
                      EXPECT_EQ(sp_pronto_end(&operation, 0), SP_OK);
                      EXPECT_EQ(do_add(sum, 2), SP_E_NOT_DETERMINISTIC);
                      return ::testing::Test::HasFailure() ? 1 : 0;
                  },
                  "verify_replay"),
              0);
}

TEST_P(ProntoOperations, ThatCommitInAnotherOrderThanTheirLocksAreReported)
{
    // The interposer is not part of this program: its calls are made here.
    EXPECT_EQ(run(
                  [] {
                      Sum& sum = open_sum();
                      static os::FutexLock lock;
                      std::atomic<int> step{0};
                      const auto hold = [&] {
                          fase_enter(&lock);
                          lock.lock();
                          lock.unlock();
                          fase_leave(&lock);
                      };
                      std::thread early([&] {
                          EXPECT_EQ(do_add(sum, 1, 0, add,
                                           [&] {
                                               hold();
                                               step.store(1);
                                               while (step.load() != 2) {
                                                   std::this_thread::yield();
                                               }
                                           }),
                                    SP_OK);
                      });
                      while (step.load() != 1) {
                          std::this_thread::yield();
                      }
                      EXPECT_EQ(do_add(sum, 2, 0, add, hold), SP_OK);
                      EXPECT_EQ(commit_order::reported(), 1U);
                      step.store(2);
                      early.join();
                      EXPECT_EQ(do_add(sum, 3, 0, add, hold), SP_OK);
                      EXPECT_EQ(commit_order::reported(), 1U);
                      return ::testing::Test::HasFailure() ? 1 : 0;
                  },
                  "check_commit_order"),
              0);
}

TEST_P(ProntoOperations, AreFoundAgainByTheNamesOfTheirMethods)
{
    ASSERT_EQ(run([] {
                  Sum& sum = open_sum();
                  EXPECT_EQ(do_add(sum, 1), SP_OK);
                  EXPECT_EQ(do_add(sum, 2, 0, add_or_throw), SP_OK);
                  crash();
                  return 0;
              }),
              killed);
    static constexpr sp_pronto_method changed[] = {{"add", "(i32)", 0, &replay_nothing}, sum_methods[1], sum_methods[2]};
    static constexpr sp_pronto_type with_changed{"sum", sizeof(Sum), alignof(Sum), changed, 3, &construct, &destroy, nullptr};
    static constexpr sp_pronto_method fewer[] = {sum_methods[0]};
    static constexpr sp_pronto_type with_fewer{"sum", sizeof(Sum), alignof(Sum), fewer, 1, &construct, &destroy, nullptr};
    static constexpr sp_pronto_type larger{"sum", sizeof(Sum) + 8, alignof(Sum), sum_methods, 3, &construct, &destroy, nullptr};
    static constexpr sp_pronto_type other{"other", sizeof(Sum), alignof(Sum), sum_methods, 3, &construct, &destroy, nullptr};
    const auto refused = [&](const sp_pronto_type& type, const char* named) {
        return run([&] {
            static_cast<void>(sp_pronto_register(&type));
            int error = SP_OK;
            EXPECT_EQ(sp_pronto_object(&type, "sum", SP_PRONTO_ACCEPT_CHANGED_METHODS, nullptr, 0, &error), nullptr);
            EXPECT_EQ(error, SP_E_OBJECT_TYPE);
            EXPECT_NE(std::string(sp_last_error()).find(named), std::string::npos) << sp_last_error();
            if (::testing::Test::HasFailure()) {
                return 1;
            }
            crash();
        });
    };
    EXPECT_EQ(refused(with_changed, "add"), killed);
    EXPECT_EQ(refused(with_fewer, "add_or_throw"), killed);
    EXPECT_EQ(refused(larger, "bytes"), killed);
    EXPECT_EQ(refused(other, "other"), killed);
    // Another order, and one more, used at once.
    static constexpr sp_pronto_method reordered[] = {
        sum_methods[2], {"add_more", "(u64,u64)", 0, &replay_add}, sum_methods[1], sum_methods[0]};
    static constexpr sp_pronto_type with_more{"sum", sizeof(Sum), alignof(Sum), reordered, 4, &construct, &destroy, &equal};
    ASSERT_EQ(run([] {
                  Sum& sum = open_sum("sum", with_more);
                  EXPECT_EQ(sum.total, 3U);
                  EXPECT_EQ(do_add(sum, 3, 0, 3), SP_OK);
                  EXPECT_EQ(do_add(sum, 4, 0, 1), SP_OK);
                  if (::testing::Test::HasFailure()) {
                      return 1;
                  }
                  crash();
              }),
              killed);
    EXPECT_EQ(run([] { return open_sum("sum", with_more).total == 10 ? 0 : 1; }), 0);
    // Nothing is logged any more: a changed signature may be taken over, if that is wished.
    EXPECT_EQ(run([] {
                  static_cast<void>(sp_pronto_register(&with_changed));
                  EXPECT_EQ(sp_pronto_object(&with_changed, "sum", 0, nullptr, 0, nullptr), nullptr);
                  EXPECT_NE(sp_pronto_object(&with_changed, "sum", SP_PRONTO_ACCEPT_CHANGED_METHODS, nullptr, 0, nullptr), nullptr)
                      << sp_last_error();
                  return ::testing::Test::HasFailure() ? 1 : 0;
              }),
              0);
}

TEST_P(ProntoOperations, OfADeletedObjectAreGone)
{
    ASSERT_EQ(run([] {
                  EXPECT_EQ(do_add(open_sum(), 1), SP_OK);
                  EXPECT_EQ(sp_pronto_delete("sum"), SP_OK) << sp_last_error();
                  EXPECT_EQ(sp_pronto_delete("sum"), SP_E_HANDLE_MISSING);
                  EXPECT_EQ(do_add(open_sum(), 5), SP_OK);
                  if (::testing::Test::HasFailure()) {
                      return 1;
                  }
                  crash();
              }),
              killed);
    EXPECT_EQ(run([] { return open_sum().total == 5 ? 0 : 1; }), 0);
}

TEST_P(ProntoOperations, OfManyObjectsAreRecoveredTogether)
{
    constexpr std::uint64_t objects = 60;
    ASSERT_EQ(run([] {
                  std::vector<Sum*> sums;
                  for (std::uint64_t i = 0; i < objects; ++i) {
                      sums.push_back(&open_sum(("sum" + std::to_string(i)).c_str()));
                  }
                  for (std::uint64_t number = 1; number <= 20; ++number) {
                      for (std::uint64_t i = 0; i < objects; ++i) {
                          EXPECT_EQ(do_add(*sums[i], number * i, 100), SP_OK);
                      }
                  }
                  if (::testing::Test::HasFailure()) {
                      return 1;
                  }
                  crash();
              }),
              killed);
    EXPECT_EQ(run([] {
                  for (std::uint64_t i = 0; i < objects; ++i) {
                      EXPECT_EQ(open_sum(("sum" + std::to_string(i)).c_str()).total, 210 * i);
                  }
                  return ::testing::Test::HasFailure() ? 1 : 0;
              }),
              0);
}

}  // namespace
}  // namespace stillpoint::pronto

// Operations that are not waited for: their tickets say when they are durable.

#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <thread>

#include "support/crashing_program.hpp"
#include "support/sum_object.hpp"
#include "support/temporary_directory.hpp"

namespace stillpoint::pronto {
namespace {

using test::crash;
using test::killed;

class DeferredWait : public ::testing::TestWithParam<const char*> {
protected:
    int run(const std::function<int()>& body)
    {
        return test::run_with_pool(pool_, "engine=pronto interval_ms=3600000 " + std::string(GetParam()), body);
    }
    test::TemporaryDirectory directory_;
    std::string pool_ = directory_.file("test.pool");
};

INSTANTIATE_TEST_SUITE_P(Media, DeferredWait, ::testing::Values("medium=memory", "medium=file durability=process"),
                         [](const auto& medium) { return "number" + std::to_string(medium.index); });

/// As do_add(), but not waited for.
sp_pronto_ticket add_and_go_on(Sum& sum, std::uint64_t number)
{
    sp_pronto_ticket ticket{};
    sp_pronto_defer_begin();
    EXPECT_EQ(do_add(sum, number), SP_OK);
    sp_pronto_defer_end(&ticket);
    return ticket;
}

TEST_P(DeferredWait, MakesOperationsDurableThatCameBeforeTheTicket)
{
    constexpr std::uint64_t operations = 1000;
    ASSERT_EQ(run([] {
                  Sum& sum = open_sum();
                  Sum& other = open_sum("other");
                  sp_pronto_ticket newest{};
                  for (std::uint64_t i = 1; i <= operations; ++i) {
                      add_and_go_on(other, i);
                      newest = add_and_go_on(sum, i);
                  }
                  int code = sp_pronto_wait(&newest, 0);
                  EXPECT_TRUE(code == SP_OK || code == SP_E_TIMED_OUT) << code;
                  code = sp_pronto_wait(&newest, 60'000);
                  EXPECT_EQ(code, SP_OK);
                  EXPECT_EQ(sp_pronto_wait(&newest, 0), SP_OK);
                  if (::testing::Test::HasFailure()) {
                      return 1;
                  }
                  crash();
              }),
              killed);
    ASSERT_EQ(run([] { return open_sum().count == operations && open_sum("other").count == operations ? 0 : 1; }), 0);
}

TEST_P(DeferredWait, CountsOperationsOfItsOwnThread)
{
    ASSERT_EQ(run([] {
                  Sum& sum = open_sum();
                  sp_pronto_ticket ticket{};
                  sp_pronto_operation operation;
                  std::uint64_t* place = static_cast<std::uint64_t*>(sp_pronto_begin(&operation, &sum, add, sizeof *place, nullptr));
                  *place = 7;
                  add_to(sum, reinterpret_cast<std::byte*>(place), sizeof *place);
                  EXPECT_EQ(sp_pronto_commit_async(&operation, &ticket), SP_OK);
                  EXPECT_EQ(sp_pronto_end(&operation, 0), SP_OK);
                  EXPECT_EQ(ticket.object, &sum);
                  EXPECT_EQ(sp_pronto_wait(&ticket, -1), SP_OK);

                  sp_pronto_defer_begin();
                  sp_pronto_defer_begin();
                  sp_pronto_defer_end(&ticket);
                  EXPECT_EQ(ticket.object, nullptr) << "this thread did nothing since";
                  std::thread([&] { EXPECT_EQ(do_add(sum, 1), SP_OK); }).join();
                  sp_pronto_defer_end(&ticket);
                  EXPECT_EQ(ticket.object, nullptr) << "nor did another for it";
                  EXPECT_EQ(sp_pronto_wait(&ticket, -1), SP_OK);
                  sp_pronto_defer_end(nullptr);
                  return ::testing::Test::HasFailure() ? 1 : 0;
              }),
              0);
}

}  // namespace
}  // namespace stillpoint::pronto

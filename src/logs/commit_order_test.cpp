// The order of commits. Invariants of newest_up_to(), which readers without versions ask:
//   - it waits for a transaction that may have been read from, and for no later one;
//   - one that was rolled back, or wrote nothing durable, does not count.

#include "logs/commit_order.hpp"

#include <atomic>
#include <gtest/gtest.h>
#include <thread>

namespace stillpoint::logs {
namespace {

class Order : public ::testing::Test {
protected:
    void SetUp() override
    {
        ASSERT_TRUE(order_.reserve());
        order_.set_slots(3);
    }
    CommitOrder order_;
};

TEST_F(Order, NamesTheNewestThatAReaderMayHaveSeen)
{
    EXPECT_EQ(order_.newest_up_to(100), 0U);
    CommitOrder::announce(order_.slot(1), 10);
    CommitOrder::settle(order_.slot(1), 20);
    CommitOrder::persisted(order_.slot(1), 20);
    CommitOrder::announce(order_.slot(2), 30);
    CommitOrder::settle(order_.slot(2), 40);
    CommitOrder::persisted(order_.slot(2), 40);
    EXPECT_EQ(order_.newest_up_to(100), 40U);
    EXPECT_EQ(order_.newest_up_to(39), 20U);
    CommitOrder::announce(order_.slot(2), 50);
    CommitOrder::withdraw(order_.slot(2));
    EXPECT_EQ(order_.newest_up_to(100), 20U);
}

TEST_F(Order, DoesNotWaitForOneThatBeganLater)
{
    CommitOrder::announce(order_.slot(1), 101);
    EXPECT_EQ(order_.newest_up_to(100), 0U);
}

TEST_F(Order, WaitsUntilOneThatMayHaveBeenSeenHasItsLogPersistent)
{
    CommitOrder::announce(order_.slot(1), 10);
    std::atomic<Timestamp> newest{1};
    std::thread reader([&] { newest = order_.newest_up_to(100); });
    EXPECT_EQ(newest.load(), 1U);
    CommitOrder::settle(order_.slot(1), 60);
    EXPECT_EQ(newest.load(), 1U);
    CommitOrder::persisted(order_.slot(1), 60);
    reader.join();
    EXPECT_EQ(newest.load(), 60U);
}

}  // namespace
}  // namespace stillpoint::logs

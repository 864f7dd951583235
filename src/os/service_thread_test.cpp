#include "os/service_thread.hpp"

#include <atomic>
#include <gtest/gtest.h>
#include <unistd.h>

#include "os/futex.hpp"

namespace stillpoint::os {
namespace {

std::atomic<std::uint32_t> ended{0};

void wait_for_the_end(void*)
{
    while (ended.load() == 0) {
        futex_wait(ended, 0);
    }
}

// libc sends each thread a signal of its own and waits for all answers: without them the program stands forever.
TEST(ServiceThread, AProgramMayChangeItsUserWhileOneRuns)
{
    ServiceThread thread;
    ASSERT_TRUE(thread.start("sp-test", &wait_for_the_end, nullptr).has_value());
    EXPECT_EQ(setuid(getuid()), 0);
    EXPECT_EQ(setgid(getgid()), 0);
    ended = 1;
    futex_wake(ended);
    thread.join();
}

}  // namespace
}  // namespace stillpoint::os

// Messages to the program's callback: whole, in order, on another thread, none lost and none after the callback was taken away.

#include "runtime/message_queue.hpp"

#include <atomic>
#include <mutex>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "os/log.hpp"

namespace stillpoint {
namespace {

struct Taken {
    std::mutex lock;
    std::vector<std::string> lines;
    std::vector<sp_log_level> levels;
    std::atomic<int> calls{0};

    static void take(void* context, sp_log_level level, const char* line, std::size_t length)
    {
        auto& here = *static_cast<Taken*>(context);
        const std::lock_guard guard(here.lock);
        here.lines.emplace_back(line, length);
        here.levels.push_back(level);
        here.calls.fetch_add(1);
    }
};

class MessageQueue : public testing::Test {
protected:
    ~MessageQueue() override { static_cast<void>(message_queue::set_callback(nullptr, nullptr)); }

    Taken taken_;
};

TEST_F(MessageQueue, DeliversLinesInOrderWithTheirLevels)
{
    ASSERT_TRUE(message_queue::set_callback(&Taken::take, &taken_));
    os::log(os::Severity::note, "first {}", 1);
    os::log(os::Severity::warning, "second\n\x1b[31m");
    os::log(os::Severity::debug, "not told");
    message_queue::flush();
    EXPECT_EQ(taken_.lines, (std::vector<std::string>{"first 1", "second\\x0a\\x1b[31m"}));
    EXPECT_EQ(taken_.levels, (std::vector{SP_LOG_INFO, SP_LOG_WARNING}));
}

TEST_F(MessageQueue, PrintsErrorsAsWell)
{
    ASSERT_TRUE(message_queue::set_callback(&Taken::take, &taken_));
    testing::internal::CaptureStderr();
    os::log(os::Severity::error, "the disk is gone");
    message_queue::flush();
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "stillpoint: error: the disk is gone\n");
    EXPECT_EQ(taken_.lines, std::vector<std::string>{"the disk is gone"});
}

TEST_F(MessageQueue, LosesNoLineOfManyThreads)
{
    constexpr int threads = 4;
    constexpr int lines = 500;
    ASSERT_TRUE(message_queue::set_callback(&Taken::take, &taken_));
    testing::internal::CaptureStderr();
    {
        std::vector<std::jthread> writers;
        for (int i = 0; i < threads; ++i) {
            writers.emplace_back([] {
                for (int line = 0; line < lines; ++line) {
                    os::log(os::Severity::note, "line");
                }
            });
        }
    }
    message_queue::flush();
    const std::string printed = testing::internal::GetCapturedStderr();  // Lines that found the queue full.
    const auto printed_lines = std::count(printed.begin(), printed.end(), '\n');
    EXPECT_EQ(taken_.calls.load() + printed_lines, threads * lines);
}

TEST_F(MessageQueue, CallsNoCallbackThatWasTakenAway)
{
    for (int i = 0; i < 200; ++i) {
        auto one = std::make_unique<Taken>();
        ASSERT_TRUE(message_queue::set_callback(&Taken::take, one.get()));
        os::log(os::Severity::note, "line");
        ASSERT_TRUE(message_queue::set_callback(nullptr, nullptr));
        EXPECT_EQ(one->calls.load(), 1);
    }
}

TEST_F(MessageQueue, ACallbackMayTakeItselfAway)
{
    static std::atomic<int> calls{0};
    const auto once = [](void*, sp_log_level, const char*, std::size_t) {
        calls.fetch_add(1);
        EXPECT_TRUE(message_queue::set_callback(nullptr, nullptr));
    };
    ASSERT_TRUE(message_queue::set_callback(once, nullptr));
    os::log(os::Severity::note, "line");
    message_queue::flush();
    EXPECT_EQ(calls.load(), 1);
}

TEST_F(MessageQueue, AChildPrintsItsOwn)
{
    ASSERT_TRUE(message_queue::set_callback(&Taken::take, &taken_));
    testing::internal::CaptureStderr();
    const pid_t child = fork();
    if (child == 0) {
        message_queue::reset_after_fork();
        os::log(os::Severity::note, "of the child");
        _exit(taken_.calls.load());
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "stillpoint: of the child\n");
}

}  // namespace
}  // namespace stillpoint

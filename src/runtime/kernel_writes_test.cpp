// Ranges that system calls store into: in flight until the call returns, stored until a collect has taken them, and never forgotten.

#include "runtime/kernel_writes.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "core/units.hpp"
#include "stillpoint/stillpoint.h"

namespace stillpoint::kernel_writes {
namespace {

constexpr std::uintptr_t window = SP_WINDOW_INDEX << SP_WINDOW_SHIFT;

[[nodiscard]] void* at(std::uint64_t page, std::size_t offset = 0) { return reinterpret_cast<void*>(window + page * page_bytes + offset); }

std::vector<std::uint64_t> left_behind;

void note_left(void* address, std::size_t size) noexcept
{
    note_stored(address, size);
    left_behind.push_back((reinterpret_cast<std::uintptr_t>(address) - window) / page_bytes);
}

std::vector<std::uint64_t> pages_of(void (*walk)(std::uintptr_t, std::uintptr_t, void (*)(void*, PageRun), void*) noexcept,
                                    std::uint64_t first, std::uint64_t end)
{
    std::vector<std::uint64_t> pages;
    walk(
        window + first * page_bytes, window + end * page_bytes,
        [](void* context, PageRun run) {
            for (std::uintptr_t page = run.begin; page < run.end; page += page_bytes) {
                static_cast<std::vector<std::uint64_t>*>(context)->push_back((page - window) / page_bytes);
            }
        },
        &pages);
    return pages;
}

using Pages = std::vector<std::uint64_t>;

class KernelWrites : public testing::Test {
protected:
    void SetUp() override
    {
        ASSERT_TRUE(reserve());
        left_behind.clear();
        pages_of(&take_stored, 0, 1024);
    }
};

TEST_F(KernelWrites, AreInFlightFromTheAnnouncementToTheWithdrawal)
{
    const int frame = 0;
    const Slot slot = announce(at(3, 100), 2 * page_bytes, &frame);
    EXPECT_EQ(pages_of(&visit_in_flight, 0, 100), (Pages{3, 4, 5}));
    EXPECT_EQ(pages_of(&visit_in_flight, 4, 5), (Pages{4}));
    const PageRun first = first_in_flight(window, window + 100 * page_bytes);
    EXPECT_EQ(first.begin, window + 3 * page_bytes);
    EXPECT_EQ(first.end, window + 6 * page_bytes);
    withdraw(slot, &frame);
    EXPECT_EQ(pages_of(&visit_in_flight, 0, 100), Pages{});
    EXPECT_EQ(first_in_flight(window, window + page_bytes).begin, window + page_bytes);
}

TEST_F(KernelWrites, AreTakenOnceWhenStored)
{
    note_stored(at(63, 4095), 2);
    note_stored(at(200), 1);
    note_stored(at(200), page_bytes);
    EXPECT_EQ(pages_of(&take_stored, 0, 1024), (Pages{63, 64, 200}));
    EXPECT_EQ(pages_of(&take_stored, 0, 1024), Pages{});
}

TEST_F(KernelWrites, ReachToTheEndOfTheWindowAtMost)
{
    const int frame = 0;
    constexpr std::uint64_t last = (std::uint64_t{1} << SP_WINDOW_SHIFT) / page_bytes - 1;
    const Slot slot = announce(at(last), SIZE_MAX / 2, &frame);
    EXPECT_EQ(pages_of(&visit_in_flight, last - 1, last + 1), Pages{last});
    withdraw(slot, &frame);
}

/// siglongjmp out of a handler that came in the middle of a call.
TEST_F(KernelWrites, AreHandedOverByTheNextCallOfAThreadThatLeftByAJump)
{
    const char frames[4096] = {};
    static_cast<void>(announce(at(7), 1, &frames[0]));
    begin_call(&frames[2048], &note_left);  // A call of an older frame: the other is gone.
    const Slot next = announce(at(9), 1, &frames[2048]);
    EXPECT_EQ(left_behind, Pages{7});
    EXPECT_EQ(pages_of(&take_stored, 0, 1024), Pages{7});
    EXPECT_EQ(pages_of(&visit_in_flight, 0, 100), Pages{9});
    withdraw(next, &frames[2048]);
}

TEST_F(KernelWrites, OfAHandlerDoNotEndThoseOfTheCallThatItInterrupts)
{
    const char frames[4096] = {};
    const Slot outer = announce(at(7), 1, &frames[2048]);
    begin_call(&frames[0], &note_left);
    const Slot inner = announce(at(9), 1, &frames[0]);
    EXPECT_EQ(left_behind, Pages{});
    EXPECT_EQ(pages_of(&visit_in_flight, 0, 100).size(), 2U);
    withdraw(inner, &frames[0]);
    withdraw(outer, &frames[2048]);
}

TEST_F(KernelWrites, OfOneCallStayTogether)
{
    const char frames[64] = {};
    const Slot first = announce(at(7), 1, &frames[0]);
    begin_call(&frames[32], &note_left);
    const Slot second = announce(at(9), 1, &frames[32]);
    EXPECT_EQ(pages_of(&visit_in_flight, 0, 100).size(), 2U);
    withdraw(second, &frames[32]);
    withdraw(first, &frames[0]);
    EXPECT_EQ(left_behind, Pages{});
}

TEST_F(KernelWrites, OfARequestEndWhenItsResultIsAskedFor)
{
    const int request = 0;
    announce_request(at(20), 2 * page_bytes, &request, &note_left);
    EXPECT_EQ(pages_of(&visit_in_flight, 0, 100), (Pages{20, 21}));
    announce_request(at(30), 1, &request, &note_left);  // An old description is used again: what it said before is over.
    EXPECT_EQ(pages_of(&visit_in_flight, 0, 100), Pages{30});
    end_request(&request, &note_left);
    EXPECT_EQ(pages_of(&visit_in_flight, 0, 100), Pages{});
    EXPECT_EQ(pages_of(&take_stored, 0, 1024), (Pages{20, 21, 30}));
}

TEST_F(KernelWrites, AreHandedOverAtTheEndOfAThreadThatLeftByAJump)
{
    std::thread([] {
        const int frame = 0;
        static_cast<void>(announce(at(11), 1, &frame));
        end_thread(&note_left);
    }).join();
    EXPECT_EQ(left_behind, Pages{11});
    EXPECT_EQ(pages_of(&visit_in_flight, 0, 100), Pages{});
}

TEST_F(KernelWrites, BeyondTheSlotsMakeEverythingCountAsInFlight)
{
    const int frame = 0;
    std::size_t without = 0;
    for (int i = 0; i < 1030; ++i) {
        without += announce(at(1), 1, &frame) == no_slot ? 1U : 0U;
    }
    EXPECT_EQ(without, 6U);
    EXPECT_EQ(first_in_flight(window + 50 * page_bytes, window + 60 * page_bytes).begin, window + 50 * page_bytes);
    withdraw_of(&frame, without);
    EXPECT_EQ(first_in_flight(window + 50 * page_bytes, window + 60 * page_bytes).begin, window + 60 * page_bytes);
    EXPECT_EQ(pages_of(&visit_in_flight, 0, 100), Pages{});
}

TEST_F(KernelWrites, WaitForWhoeverProtectsPages)
{
    std::atomic<bool> announced{false};
    std::thread caller;
    {
        const Protecting protecting;
        caller = std::thread([&] {
            const int frame = 0;
            const Slot slot = announce(at(1), 1, &frame);
            announced = true;
            withdraw(slot, &frame);
        });
        while (pages_of(&visit_in_flight, 0, 100).empty()) {
            std::this_thread::yield();
        }
        EXPECT_FALSE(announced);
    }
    caller.join();
    EXPECT_TRUE(announced);
}

TEST_F(KernelWrites, AreForgottenInAChild)
{
    const int frame = 0;
    static_cast<void>(announce(at(1), 1, &frame));
    reset_after_fork();
    EXPECT_EQ(pages_of(&visit_in_flight, 0, 100), Pages{});
    const Slot slot = announce(at(2), 1, &frame);
    EXPECT_EQ(left_behind, Pages{});
    withdraw(slot, &frame);
}

}  // namespace
}  // namespace stillpoint::kernel_writes

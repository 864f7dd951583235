// A cancelled transaction, and one that runs again, is undone: in shared memory, in the function's own variables, in frames of functions
// that it has called, and in the heap.

#include <cstdlib>
#include <malloc.h>

#include "itm_functions.hpp"
#include "pool_fixture.hpp"
#include "stillpoint/itm.h"

namespace {

class Rollback : public InBothMemories {};
STILLPOINT_IN_BOTH_MEMORIES(Rollback);

struct State {
    long one;
    long two;
    long* block;
};

int attempts = 0;

/// True at the first call after attempts was cleared.
[[gnu::transaction_pure, gnu::noinline]] bool is_first_attempt() { return attempts++ == 0; }
/// As a conflict: everything again.
[[gnu::transaction_pure, gnu::noinline]] void run_again() { _ITM_abortTransaction(itm::user_retry); }
[[gnu::transaction_pure, gnu::noinline]] std::uint32_t way() { return _ITM_inTransaction(); }

TEST_P(Rollback, ACancelledTransactionHasDoneNothing)
{
    auto& state = root<State>("state");
    __transaction_atomic { state.one = 1; }
    long local = 5;
    __transaction_atomic
    {
        state.one = 2;
        state.two = 3;
        local = 6;
        if (state.one == 2) {
            __transaction_cancel;
        }
    }
    EXPECT_EQ(state.one, 1);
    EXPECT_EQ(state.two, 0);
    EXPECT_EQ(local, 5);
    restart();
    EXPECT_EQ(root<State>("state").one, 1);
}

TEST_P(Rollback, ANestedTransactionIsCancelledAlone)
{
    auto& state = root<State>("state");
    long local = 0;
    __transaction_atomic
    {
        state.one = 1;
        local = 1;
        __transaction_atomic
        {
            state.one += 10;
            state.two = 7;
            local = 2;
            if (state.two == 7) {
                __transaction_cancel;
            }
        }
        state.two += state.one;
        local += 10;
    }
    EXPECT_EQ(state.one, 1);
    EXPECT_EQ(state.two, 1);
    EXPECT_EQ(local, 11);
    restart();
    EXPECT_EQ(root<State>("state").two, 1);
}

[[gnu::noinline]] void add_nested(long* sum, long value, bool cancels) __attribute__((transaction_safe));
void add_nested(long* sum, long value, bool cancels)
{
    __transaction_atomic
    {
        *sum += value;
        if (cancels) {
            __transaction_cancel;
        }
    }
}

[[gnu::noinline]] long sum_in_frame(bool cancels) __attribute__((transaction_safe));
long sum_in_frame(bool cancels)
{
    long sum = 1;
    add_nested(&sum, 10, false);
    add_nested(&sum, 100, cancels);
    add_nested(&sum, 1000, false);
    return sum;
}

TEST_P(Rollback, ANestedTransactionRestoresTheFrameOfTheFunctionThatBeganIt)
{
    auto& state = root<State>("state");
    __transaction_atomic
    {
        state.one = sum_in_frame(false);
        state.two = sum_in_frame(true);
    }
    EXPECT_EQ(state.one, 1111);
    EXPECT_EQ(state.two, 1011);
}

[[gnu::noinline]] void fill(long* values, long count) __attribute__((transaction_safe));
void fill(long* values, long count)
{
    for (long i = 0; i < count; ++i) {
        values[i] = i;
    }
}

/// The frames of called functions lie where later calls, also those of the library, have theirs.
[[gnu::noinline]] long fill_frame(long depth) __attribute__((transaction_safe));
long fill_frame(long depth)
{
    long values[40];
    fill(values, 40);
    const long below = depth > 0 ? fill_frame(depth - 1) : 0;
    return below + values[39] - values[38];
}

TEST_P(Rollback, FramesOfCalledFunctionsAreTheirOwn)
{
    auto& state = root<State>("state");
    for (long round = 0; round < 3; ++round) {
        attempts = 0;
        __transaction_atomic
        {
            state.one = fill_frame(20);
            if (is_first_attempt()) {
                run_again();
            }
            state.two += state.one;
        }
    }
    EXPECT_EQ(state.one, 21);
    EXPECT_EQ(state.two, 63);
}

TEST_P(Rollback, LocalVariablesAreAsBeforeWhenATransactionRunsAgain)
{
    auto& state = root<State>("state");
    attempts = 0;
    long sum = 3;
    long array[4] = {1, 2, 3, 4};
    double real = 0.5;
    for (long i = 0; i < 3; ++i) {
        __transaction_atomic
        {
            sum += 1;
            real += 1;
            array[i] += sum;
            state.one += array[i];
            if (is_first_attempt()) {
                run_again();
            }
        }
    }
    EXPECT_EQ(attempts, 4);
    EXPECT_EQ(sum, 6);
    EXPECT_EQ(real, 3.5);
    EXPECT_EQ(array[0], 5);
    EXPECT_EQ(array[2], 9);
    EXPECT_EQ(state.one, 5 + 7 + 9);
}

TEST_P(Rollback, BlocksOfACancelledTransactionAreFreed)
{
    auto& state = root<State>("state");
    const auto used = [] { return mallinfo2().uordblks; };
    const auto cancel = [&] {
        __transaction_atomic
        {
            auto* const block = static_cast<long*>(std::malloc(1000));
            auto* const array = new long[100];
            auto* const object = new long(3);
            block[0] = array[0] = 1;
            state.one = block[0] + *object;
            __transaction_cancel;
        }
    };
    cancel();
    const auto before = used();
    for (int i = 0; i < 1000; ++i) {
        cancel();
    }
    EXPECT_LT(used(), before + 10000);
    EXPECT_EQ(state.one, 0);
}

TEST_P(Rollback, AFreedBlockIsFreedAtTheCommitOnly)
{
    auto& state = root<State>("state");
    auto* const block = static_cast<long*>(std::malloc(sizeof(long)));
    *block = 7;
    __transaction_atomic
    {
        std::free(block);
        __transaction_cancel;
    }
    EXPECT_EQ(*block, 7);
    __transaction_atomic
    {
        state.one = *block;
        std::free(block);
    }
    EXPECT_EQ(state.one, 7);
}

std::uint64_t live_blocks()
{
    sp_heap_statistics heap{};
    EXPECT_EQ(sp_heap_stats(&heap), SP_OK);
    return heap.live_blocks;
}

TEST_P(Rollback, DurableBlocksFollowTheirTransaction)
{
    if (!is_durable()) {
        GTEST_SKIP() << "ordinary memory has no figures";
    }
    auto& state = root<State>("state");
    const std::uint64_t before = live_blocks();
    __transaction_atomic
    {
        state.block = static_cast<long*>(sp_tm_malloc(100));
        state.block[0] = 1;
        __transaction_cancel;
    }
    EXPECT_EQ(live_blocks(), before);
    EXPECT_EQ(state.block, nullptr);
    __transaction_atomic
    {
        state.block = static_cast<long*>(sp_tm_malloc(100));
        state.block[0] = 2;
        __transaction_atomic
        {
            auto* const other = static_cast<long*>(sp_tm_malloc(100));
            other[0] = 1;
            sp_tm_free(state.block);
            if (other[0] == 1) {
                __transaction_cancel;
            }
        }
    }
    EXPECT_EQ(live_blocks(), before + 1);
    restart();
    auto& found = root<State>("state");
    EXPECT_EQ(live_blocks(), before + 1);
    EXPECT_EQ(found.block[0], 2);
    __transaction_atomic
    {
        std::free(found.block);  // of either kind
        found.block = nullptr;
    }
    EXPECT_EQ(live_blocks(), before);
}

int calls_at_commit = 0;
int calls_at_undo = 0;
[[gnu::transaction_pure, gnu::noinline]] void add_actions()
{
    _ITM_addUserCommitAction(
        [](void* argument) { calls_at_commit = calls_at_commit * 10 + static_cast<int>(*static_cast<char*>(argument)); }, 1,
        const_cast<char*>("\1"));
    _ITM_addUserCommitAction(
        [](void* argument) { calls_at_commit = calls_at_commit * 10 + static_cast<int>(*static_cast<char*>(argument)); }, 1,
        const_cast<char*>("\2"));
    _ITM_addUserUndoAction([](void*) { calls_at_undo = calls_at_undo * 10 + 1; }, nullptr);
    _ITM_addUserUndoAction([](void*) { calls_at_undo = calls_at_undo * 10 + 2; }, nullptr);
}

TEST_P(Rollback, ActionsAreCalledInTheirOrder)
{
    auto& state = root<State>("state");
    calls_at_commit = calls_at_undo = attempts = 0;
    __transaction_atomic
    {
        add_actions();
        state.one = 1;
        if (is_first_attempt()) {
            run_again();
        }
    }
    EXPECT_EQ(calls_at_commit, 12);
    EXPECT_EQ(calls_at_undo, 21);
    __transaction_atomic
    {
        state.one = 2;
        __transaction_atomic
        {
            add_actions();
            if (state.one == 2) {
                __transaction_cancel;
            }
        }
    }
    EXPECT_EQ(calls_at_commit, 12);
    EXPECT_EQ(calls_at_undo, 2121);
}

TEST_P(Rollback, AThreadKnowsThatItIsInATransaction)
{
    auto& state = root<State>("state");
    EXPECT_EQ(_ITM_inTransaction(), 0U);
    EXPECT_EQ(_ITM_getTransactionId(), 1U);
    std::uint32_t inside = 0;
    __transaction_atomic
    {
        inside = way();
        state.one = 1;
    }
    EXPECT_EQ(inside, 1U);
    EXPECT_EQ(_ITM_inTransaction(), 0U);
}

}  // namespace

// Transactions that do what cannot be undone run alone, and their stores are durable where the compiler has instrumented them and where it
// has not.

#include <cstdio>

#include "itm_functions.hpp"
#include "pool_fixture.hpp"
#include "stillpoint/spht.h"

namespace {

class Irrevocable : public InBothMemories {
protected:
    void SetUp() override
    {
        InBothMemories::SetUp();
        if (is_durable()) {
            int code = SP_OK;
            sp_spht_transaction* const transaction = sp_spht_begin(SP_SPHT_IRREVOCABLE | SP_SPHT_PLAIN_STORES, &code);
            if (transaction == nullptr) {
                GTEST_SKIP() << sp_last_error();
            }
            EXPECT_EQ(sp_spht_commit(transaction), SP_OK);
        }
    }
};
STILLPOINT_IN_BOTH_MEMORIES(Irrevocable);

struct State {
    long one;
    long two;
    long many[4096];
};

int calls = 0;
/// Neither safe nor pure: what a library has that knows nothing of transactions.
[[gnu::noinline]] std::uint32_t unsafe_call()
{
    asm volatile("");
    ++calls;
    return _ITM_inTransaction();
}

TEST_P(Irrevocable, AnUnsafeCallRunsOnceInAnIrrevocableTransaction)
{
    auto& state = root<State>("state");
    calls = 0;
    std::uint32_t inside = 0;
    __transaction_relaxed
    {
        state.one = 1;
        inside = unsafe_call();
        state.two = state.one + 1;
    }
    EXPECT_EQ(inside, 2U);
    EXPECT_EQ(calls, 1);
    restart();
    EXPECT_EQ(root<State>("state").one, 1);
    EXPECT_EQ(root<State>("state").two, 2);
}

/// The call comes on one path: the transaction has begun as one that can be rolled back.
[[gnu::noinline]] void sometimes_unsafe(State& state, bool calls_unsafe)
{
    __transaction_relaxed
    {
        state.one += 1;
        if (calls_unsafe) {
            unsafe_call();
            state.two += state.one;
            state.many[4095] = 9;
        }
        state.many[0] += 1;
    }
}

TEST_P(Irrevocable, ATransactionBecomesIrrevocableInTheMiddle)
{
    auto& state = root<State>("state");
    calls = 0;
    sometimes_unsafe(state, false);
    sometimes_unsafe(state, true);
    sometimes_unsafe(state, false);
    EXPECT_EQ(calls, 1);
    restart();
    auto& found = root<State>("state");
    EXPECT_EQ(found.one, 3);
    EXPECT_EQ(found.two, 2);
    EXPECT_EQ(found.many[0], 3);
    EXPECT_EQ(found.many[4095], 9);
}

void add_plainly(long* place)
{
    asm volatile("");
    *place += 5;
}
[[gnu::transaction_safe]] void add_safely(long* place) { *place += 7; }

TEST_P(Irrevocable, PointersLeadToClonesWhereThereAreSome)
{
    auto& state = root<State>("state");
    void (*volatile call)(long*) = add_safely;
    __transaction_relaxed
    {
        state.two = 1;
        call(&state.one);
    }
    void (*volatile safe_call)(long*) __attribute__((transaction_safe)) = add_safely;
    __transaction_atomic { safe_call(&state.one); }
    EXPECT_EQ(state.one, 14);
    call = add_plainly;
    __transaction_relaxed
    {
        state.two += 1;
        call(&state.one);
        state.two += state.one;
    }
    EXPECT_EQ(state.two, 21);
    restart();
    EXPECT_EQ(root<State>("state").one, 19);
    EXPECT_EQ(root<State>("state").two, 21);
}

TEST_P(Irrevocable, ANestedTransactionOfAnIrrevocableOneCanBeCancelled)
{
    auto& state = root<State>("state");
    __transaction_relaxed
    {
        unsafe_call();
        state.one = 1;
        __transaction_atomic
        {
            state.one = 2;
            state.two = 2;
            if (state.two == 2) {
                __transaction_cancel;
            }
        }
        state.two += 10;
    }
    EXPECT_EQ(state.one, 1);
    EXPECT_EQ(state.two, 10);
    restart();
    EXPECT_EQ(root<State>("state").one, 1);
}

TEST_P(Irrevocable, StoresOfCodeThatKnowsNothingOfTransactionsAreDurable)
{
    auto& state = root<State>("state");
    __transaction_relaxed
    {
        unsafe_call();
        for (long i = 0; i < 4096; i += 512) {
            state.many[i] = i + 1;
        }
        char text[32];
        state.one = std::snprintf(text, sizeof text, "%ld", state.many[512]);
    }
    restart();
    auto& found = root<State>("state");
    EXPECT_EQ(found.one, 3);
    EXPECT_EQ(found.many[0], 1);
    EXPECT_EQ(found.many[3584], 3585);
}

}  // namespace

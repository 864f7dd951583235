// An exception that leaves a transaction commits it, whatever the number of attempts, and nothing is left of those of earlier attempts.

#include <exception>
#include <malloc.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <typeinfo>

#include "itm_functions.hpp"
#include "pool_fixture.hpp"
#include "stillpoint/spht.h"

namespace {

class Exceptions : public InBothMemories {};
STILLPOINT_IN_BOTH_MEMORIES(Exceptions);

struct State {
    long one;
    long two;
};

int attempts = 0;
[[gnu::transaction_pure, gnu::noinline]] bool is_first_attempt() { return attempts++ == 0; }
[[gnu::transaction_pure, gnu::noinline]] void run_again() { _ITM_abortTransaction(itm::user_retry); }

struct Stop {
    long value;
};

TEST_P(Exceptions, AnExceptionCommits)
{
    auto& state = root<State>("state");
    long caught = 0;
    try {
        __transaction_atomic
        {
            state.one = 1;
            throw Stop{state.one + 1};
        }
    } catch (const Stop& stop) {
        caught = stop.value;
    }
    EXPECT_EQ(caught, 2);
    EXPECT_EQ(std::uncaught_exceptions(), 0);
    EXPECT_EQ(_ITM_inTransaction(), 0U);
    restart();
    EXPECT_EQ(root<State>("state").one, 1);
}

TEST_P(Exceptions, AnExceptionOfTheLibraryKeepsItsText)
{
    auto& state = root<State>("state");
    std::string text;
    try {
        __transaction_atomic
        {
            state.one = 1;
            throw std::runtime_error("a text that is too long for any short string optimisation");
        }
    } catch (const std::runtime_error& error) {
        text = error.what();
    }
    EXPECT_EQ(text, "a text that is too long for any short string optimisation");
    EXPECT_EQ(state.one, 1);
}

TEST_P(Exceptions, AnAttemptLeavesNoExceptionBehind)
{
    auto& state = root<State>("state");
    const auto throw_and_retry = [&] {
        attempts = 0;
        try {
            __transaction_atomic
            {
                struct AtExit {
                    [[gnu::transaction_safe]] ~AtExit()
                    {
                        if (is_first_attempt()) {
                            run_again();  // while the exception is in flight
                        }
                    }
                } at_exit;
                state.one += 1;
                throw std::runtime_error("again");
            }
        } catch (const std::runtime_error& error) {
            EXPECT_STREQ(error.what(), "again");
        }
        EXPECT_EQ(attempts, 2);
        EXPECT_EQ(std::uncaught_exceptions(), 0);
    };
    throw_and_retry();
    const auto before = mallinfo2().uordblks;
    for (int i = 0; i < 1000; ++i) {
        throw_and_retry();
    }
    EXPECT_LT(mallinfo2().uordblks, before + 10000);
    EXPECT_EQ(state.one, 1001);
}

State* shared = nullptr;
/// Another thread commits what the calling one's transaction has read.
[[gnu::transaction_pure, gnu::noinline]] void let_other_thread_commit()
{
    std::thread([] {
        // Not __transaction_atomic: that waits for the transactions that began before it.
        const auto add = [](sp_spht_transaction* transaction, void* /*argument*/) {
            long value = 0;
            static_cast<void>(sp_spht_read(transaction, &shared->two, &value, sizeof value));
            ++value;
            return sp_spht_write(transaction, &shared->two, &value, sizeof value);
        };
        EXPECT_EQ(sp_spht_run(add, nullptr, 0), SP_OK) << sp_last_error();
    }).join();
}

[[gnu::noinline]] void copy_and_throw()
{
    __transaction_atomic
    {
        shared->one = shared->two;
        if (is_first_attempt()) {
            let_other_thread_commit();
        }
        throw std::runtime_error("done");
    }
}

TEST_P(Exceptions, AConflictAtTheEndRunsTheTransactionAgain)
{
    if (!is_durable()) {
        GTEST_SKIP() << "in ordinary memory one transaction runs at a time";
    }
    if (body_keeps_others_from_committing()) {
        GTEST_SKIP() << "the body waits for another thread's commit, which waits for the body";
    }
    shared = &root<State>("state");
    for (int i = 0; i < 10; ++i) {
        attempts = 0;
        EXPECT_THROW(copy_and_throw(), std::runtime_error);
        EXPECT_EQ(attempts, 2);
        EXPECT_EQ(shared->one, i + 1);
        EXPECT_EQ(std::uncaught_exceptions(), 0);
    }
}

/// GCC 12 compiles no handler inside a transaction ("internal compiler error: in expand_call_tm"); other versions call the ABI's functions
/// there. This program's handlers do, while it is set.
bool handlers_are_instrumented = false;

}  // namespace

extern "C" {
void* __real___cxa_begin_catch(void* exception) noexcept;
void __real___cxa_end_catch();
void* __wrap___cxa_begin_catch(void* exception) noexcept
{
    return handlers_are_instrumented ? _ITM_cxa_begin_catch(exception) : __real___cxa_begin_catch(exception);
}
void __wrap___cxa_end_catch() { handlers_are_instrumented ? _ITM_cxa_end_catch() : __real___cxa_end_catch(); }
}

namespace {

[[gnu::noinline]] void catch_inside()
{
    auto* const value = static_cast<std::uint32_t*>(_ITM_cxa_allocate_exception(sizeof(std::uint32_t)));
    _ITM_WU4(value, 42);
    try {
        _ITM_cxa_throw(value, const_cast<std::type_info*>(&typeid(std::uint32_t)), nullptr);
    } catch (std::uint32_t caught) {
        EXPECT_EQ(caught, 42U);
        if (is_first_attempt()) {
            run_again();
        }
    }
}

[[gnu::noinline]] void catch_in_transaction()
{
    if ((_ITM_beginTransaction(itm::instrumented) & itm::skipped) == 0) {
        catch_inside();
        _ITM_commitTransaction();
    }
}

TEST_P(Exceptions, HandlersInsideATransactionAreForgottenWithIt)
{
    const auto before = mallinfo2().uordblks;
    for (int i = 0; i < 1000; ++i) {
        attempts = 0;
        handlers_are_instrumented = true;
        catch_in_transaction();
        handlers_are_instrumented = false;
        ASSERT_EQ(attempts, 2);
        ASSERT_EQ(std::uncaught_exceptions(), 0);
        ASSERT_EQ(std::current_exception(), nullptr);
    }
    EXPECT_LT(mallinfo2().uordblks, before + 10000);
}

}  // namespace

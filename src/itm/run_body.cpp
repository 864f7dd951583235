// sp_tm_run: a function as a transaction, for code of `stillpoint cc`, which has clones and no statement for transactions.

#include <cxxabi.h>
#include <exception>
#include <new>

#include "itm/abi.hpp"
#include "itm/clone_tables.hpp"
#include "itm/messages.hpp"
#include "itm/transaction.hpp"
#include "stillpoint/itm.h"
#include "stillpoint/stillpoint.h"

extern "C" __attribute__((returns_twice)) std::uint32_t _ITM_beginTransaction(std::uint32_t properties, ...);

using stillpoint::itm::Transaction;

namespace {

using namespace stillpoint::itm;
using Body = void (*)(void*);

/// Lies outside of what a rollback restores: in the frame of the function that calls run().
struct Run {
    Body body;
    Body clone;
    void* argument;
    alignas(std::exception_ptr) std::byte exception[sizeof(std::exception_ptr)];
    bool has_exception;

    std::exception_ptr take_exception()
    {
        has_exception = false;
        auto* const kept = reinterpret_cast<std::exception_ptr*>(exception);
        std::exception_ptr taken = std::move(*kept);
        kept->~exception_ptr();
        return taken;
    }
};

/// An exception does not pass through the beginning's frame before the transaction has ended.
void call(Body body, Run& run)
{
    try {
        body(run.argument);
    } catch (const abi::__forced_unwind&) {
        end_process("a thread was cancelled inside a transaction");
    } catch (...) {
        ::new (run.exception) std::exception_ptr(std::current_exception());
        run.has_exception = true;
    }
}

[[gnu::noinline]] int run_transaction(Run& run, std::uint32_t properties)
{
    const std::uint32_t actions = _ITM_beginTransaction(properties);
    if ((actions & skip_transaction) != 0) {
        return Transaction::own().ended_by();
    }
    call((actions & run_uninstrumented_code) != 0 ? run.body : run.clone, run);
    Transaction& transaction = Transaction::running();
    if (run.has_exception && transaction.roll_back_but_exception()) {
        std::rethrow_exception(run.take_exception());
    }
    transaction.commit(nullptr);
    if (run.has_exception) {
        std::rethrow_exception(run.take_exception());
    }
    return stillpoint::itm::first_failure();
}

/// A part of the transaction that the thread is in.
int run_inside(Body body, void* argument)
{
    body(argument);
    return SP_OK;
}

}  // namespace

STILLPOINT_ITM_API int sp_tm_run_pair(void (*body)(void*), void (*clone)(void*), void* argument, unsigned flags)
{
    if ((flags & ~unsigned{SP_SPHT_IRREVOCABLE | SP_SPHT_READ_ONLY}) != 0) {
        return SP_E_INVALID_ARGUMENT;
    }
    if (Transaction::running_if_any() != nullptr) {
        return run_inside(body, argument);  // called by code without instrumentation, which runs alone
    }
    Run run{body, clone, argument, {}, false};
    std::uint32_t properties = has_no_abort | returns_errors;
    if (clone == nullptr || (flags & SP_SPHT_IRREVOCABLE) != 0) {
        properties |= goes_irrevocable | has_uninstrumented_code;
    } else {
        properties |= has_instrumented_code | ((flags & SP_SPHT_READ_ONLY) != 0 ? unsigned{is_read_only} : 0U);
    }
    return run_transaction(run, properties);
}

STILLPOINT_ITM_API int sp_tm_run(void (*body)(void*), void* argument, unsigned flags)
{
    return sp_tm_run_pair(body, reinterpret_cast<Body>(clone_of(reinterpret_cast<void*>(body))), argument, flags);
}

STILLPOINT_ITM_API void* _ITM_getTMCloneOrIrrevocable(void* function);

/// The clone of sp_tm_run.
STILLPOINT_ITM_API int _ZGTt9sp_tm_run(void (*body)(void*), void* argument, unsigned /*flags*/)
{
    return run_inside(reinterpret_cast<Body>(_ITM_getTMCloneOrIrrevocable(reinterpret_cast<void*>(body))), argument);
}

STILLPOINT_ITM_API void sp_tm_cancel(void)
{
    if (Transaction* const running = Transaction::running_if_any(); running != nullptr) {
        running->abort(user_abort | outer_abort);
    }
    end_process("sp_tm_cancel outside of a transaction");
}

STILLPOINT_ITM_API void sp_tm_on_commit(void (*action)(void*), void* argument)
{
    if (Transaction* const running = Transaction::running_if_any(); running != nullptr) {
        running->add_commit_action(action, argument);
    } else {
        action(argument);
    }
}

// The functions of the ABI that begin and end transactions, and ask about them.

#include <atomic>
#include <cstdio>

#include "itm/abi.hpp"
#include "itm/messages.hpp"
#include "itm/transaction.hpp"
#include "stillpoint/itm.h"

using stillpoint::itm::Registers;
using stillpoint::itm::Transaction;

/// Called by _ITM_beginTransaction (registers.cpp).
extern "C" [[gnu::visibility("hidden")]] std::uint32_t stillpoint_itm_begin(std::uint32_t properties, const Registers* registers)
{
    return Transaction::own().begin(properties, *registers);
}

STILLPOINT_ITM_API void _ITM_commitTransaction(void) { Transaction::running().commit(nullptr); }
STILLPOINT_ITM_API void _ITM_commitTransactionEH(void* exception) { Transaction::running().commit(exception); }
STILLPOINT_ITM_API [[noreturn]] void _ITM_abortTransaction(std::uint32_t reason) { Transaction::running().abort(reason); }
/// There is one mode that can be changed to: serial and irrevocable.
STILLPOINT_ITM_API void _ITM_changeTransactionMode(std::uint32_t /*mode*/) { Transaction::running().become_irrevocable(); }

STILLPOINT_ITM_API std::uint32_t _ITM_inTransaction(void)
{
    const Transaction* const running = Transaction::running_if_any();
    return running != nullptr ? running->how_executing() : stillpoint::itm::outside;
}

STILLPOINT_ITM_API std::uint32_t _ITM_getTransactionId(void)
{
    const Transaction* const running = Transaction::running_if_any();
    return running != nullptr ? running->id() : stillpoint::itm::no_transaction_id;
}

namespace {

/// Actions belong to the transaction as a whole: compilers name no other one.
void refuse_other(std::uint64_t transaction_id)
{
    if (transaction_id != stillpoint::itm::no_transaction_id) {
        stillpoint::itm::end_process("an action was given to another transaction than the outermost one, which is not supported");
    }
}

}  // namespace

STILLPOINT_ITM_API void _ITM_addUserCommitAction(void (*action)(void*), std::uint64_t transaction_id, void* argument)
{
    refuse_other(transaction_id);
    Transaction::running().add_commit_action(action, argument);
}

/// Called at each rollback, the last one first.
STILLPOINT_ITM_API void _ITM_addUserUndoAction(void (*action)(void*), void* argument)
{
    Transaction::running().add_undo_action(action, argument);
}

/// A promise of the program that it needs no further protection of some memory: nothing is gained by using it.
STILLPOINT_ITM_API void _ITM_dropReferences(void* /*place*/, std::size_t /*bytes*/) {}

STILLPOINT_ITM_API int _ITM_getThreadnum(void)
{
    static std::atomic<int> numbers{0};
    static thread_local const int number = numbers.fetch_add(1, std::memory_order_relaxed) + 1;
    return number;
}

STILLPOINT_ITM_API int _ITM_versionCompatible(int version) { return version == stillpoint::itm::abi_version ? 1 : 0; }
STILLPOINT_ITM_API const char* _ITM_libraryVersion(void) { return "Stillpoint " STILLPOINT_VERSION; }

STILLPOINT_ITM_API [[noreturn]] void _ITM_error(const void* /*place*/, int code)
{
    char text[64];
    std::snprintf(text, sizeof text, "the program reports error %d of a transaction", code);
    stillpoint::itm::end_process(text);
}

STILLPOINT_ITM_API int sp_tm_status(void) { return stillpoint::itm::first_failure(); }

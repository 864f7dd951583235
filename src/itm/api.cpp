// The functions of the ABI that begin and end transactions, and ask about them.

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

STILLPOINT_ITM_API int sp_tm_status(void) { return stillpoint::itm::first_failure(); }

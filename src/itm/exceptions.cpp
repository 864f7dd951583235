// C++ exceptions inside transactions. An exception that leaves a transaction commits it, by _ITM_commitTransactionEH.

#include <cxxabi.h>
#include <typeinfo>

#include "itm/abi.hpp"
#include "itm/transaction.hpp"

using stillpoint::itm::Transaction;

STILLPOINT_ITM_API void* _ITM_cxa_allocate_exception(std::size_t bytes) { return Transaction::running().allocate_exception(bytes); }
STILLPOINT_ITM_API void _ITM_cxa_free_exception(void* object) { Transaction::running().exceptions().free(object); }

STILLPOINT_ITM_API [[noreturn]] void _ITM_cxa_throw(void* object, std::type_info* type, void (*destructor)(void*))
{
    Transaction::running().exceptions().note_throw();
    abi::__cxa_throw(object, type, destructor);
}

STILLPOINT_ITM_API void* _ITM_cxa_begin_catch(void* exception) { return Transaction::running().exceptions().begin_catch(exception); }
STILLPOINT_ITM_API void _ITM_cxa_end_catch(void) { Transaction::running().exceptions().end_catch(); }

// These functions by the names of clones, which code of `stillpoint cc` calls.
STILLPOINT_ITM_API void* _ZGTt24__cxa_allocate_exception(std::size_t bytes) { return _ITM_cxa_allocate_exception(bytes); }
STILLPOINT_ITM_API void _ZGTt20__cxa_free_exception(void* object) { _ITM_cxa_free_exception(object); }
STILLPOINT_ITM_API [[noreturn]] void _ZGTt11__cxa_throw(void* object, std::type_info* type, void (*destructor)(void*))
{
    _ITM_cxa_throw(object, type, destructor);
}
STILLPOINT_ITM_API void* _ZGTt17__cxa_begin_catch(void* exception) { return _ITM_cxa_begin_catch(exception); }
STILLPOINT_ITM_API void _ZGTt15__cxa_end_catch(void) { _ITM_cxa_end_catch(); }

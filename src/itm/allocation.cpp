// malloc, free, new and delete inside transactions, and durable blocks (stillpoint/itm.h).

#include <cstdlib>
#include <new>

#include "itm/abi.hpp"
#include "itm/transaction.hpp"
#include "stillpoint/itm.h"
#include "stillpoint/stillpoint.h"

namespace {

using stillpoint::itm::Transaction;

void release_object(void* object) { ::operator delete(object); }
void release_array(void* array) { ::operator delete[](array); }

void* note(void* block, std::size_t bytes, Transaction::Release release)
{
    if (block != nullptr) {
        Transaction::running().note_allocated(block, bytes, release);
    }
    return block;
}

void release_later(void* block, Transaction::Release release)
{
    if (stillpoint_is_persistent(block)) {
        Transaction::running().free_durable(block);
    } else if (block != nullptr) {
        Transaction::running().free_later(block, release);
    }
}

constexpr std::size_t alignment_bytes = 16;

}  // namespace

STILLPOINT_ITM_API void* _ITM_malloc(std::size_t bytes) { return note(std::malloc(bytes), bytes, std::free); }
STILLPOINT_ITM_API void* _ITM_calloc(std::size_t count, std::size_t bytes)
{
    return note(std::calloc(count, bytes), count * bytes, std::free);
}
STILLPOINT_ITM_API void _ITM_free(void* block) { release_later(block, std::free); }

// The instrumented clones of operator new and delete.
STILLPOINT_ITM_API void* _ZGTtnwm(std::size_t bytes) { return note(::operator new(bytes), bytes, release_object); }
STILLPOINT_ITM_API void* _ZGTtnam(std::size_t bytes) { return note(::operator new[](bytes), bytes, release_array); }
STILLPOINT_ITM_API void* _ZGTtnwmRKSt9nothrow_t(std::size_t bytes, const std::nothrow_t* nothrow)
{
    return note(::operator new(bytes, *nothrow), bytes, release_object);
}
STILLPOINT_ITM_API void* _ZGTtnamRKSt9nothrow_t(std::size_t bytes, const std::nothrow_t* nothrow)
{
    return note(::operator new[](bytes, *nothrow), bytes, release_array);
}
STILLPOINT_ITM_API void _ZGTtdlPv(void* object) { release_later(object, release_object); }
STILLPOINT_ITM_API void _ZGTtdlPvm(void* object, std::size_t /*bytes*/) { release_later(object, release_object); }
STILLPOINT_ITM_API void _ZGTtdlPvRKSt9nothrow_t(void* object, const std::nothrow_t* /*nothrow*/) { release_later(object, release_object); }
STILLPOINT_ITM_API void _ZGTtdlPvmRKSt9nothrow_t(void* object, std::size_t /*bytes*/, const std::nothrow_t* /*nothrow*/)
{
    release_later(object, release_object);
}
STILLPOINT_ITM_API void _ZGTtdaPv(void* array) { release_later(array, release_array); }
STILLPOINT_ITM_API void _ZGTtdaPvRKSt9nothrow_t(void* array, const std::nothrow_t* /*nothrow*/) { release_later(array, release_array); }

STILLPOINT_ITM_API void* sp_tm_malloc(std::size_t bytes)
{
    Transaction* const running = Transaction::running_if_any();
    return running != nullptr ? running->allocate_durable(bytes, alignment_bytes) : sp_malloc(bytes);
}

STILLPOINT_ITM_API void* sp_tm_aligned_alloc(std::size_t alignment, std::size_t bytes)
{
    Transaction* const running = Transaction::running_if_any();
    return running != nullptr ? running->allocate_durable(bytes, alignment) : sp_aligned_alloc(alignment, bytes);
}

STILLPOINT_ITM_API void sp_tm_free(void* block)
{
    if (Transaction* const running = Transaction::running_if_any(); running != nullptr) {
        running->free_durable(block);
    } else {
        sp_free(block);
    }
}

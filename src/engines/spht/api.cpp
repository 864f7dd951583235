// The C API of this engine (stillpoint/spht.h).

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engines/spht/own_transaction.hpp"
#include "engines/spht/spht_engine.hpp"
#include "runtime/api_export.hpp"
#include "runtime/session_state.hpp"
#include "runtime/volatile_memory.hpp"
#include "stillpoint/spht.h"

using stillpoint::fail;
using stillpoint::Failure;
using stillpoint::Heap;
using stillpoint::Result;
using stillpoint::Session;
using stillpoint::used_session;
using stillpoint::spht::Outcome;
using stillpoint::spht::Transaction;
using stillpoint::spht::TransactionalMemory;

namespace {

constexpr unsigned known_flags = SP_SPHT_READ_ONLY | SP_SPHT_IRREVOCABLE | SP_SPHT_READS_MAY_BE_LOST | SP_SPHT_PRIVATIZES |
                                 SP_SPHT_PLAIN_STORES;

Transaction& of(sp_spht_transaction* transaction) { return Transaction::of(transaction); }

Result<TransactionalMemory*> memory_in_use()
{
    Session* const session = used_session();
    if (session == nullptr) {
        return fail(
            SP_E_NOT_OPEN, 0,
            "transactions need a pool: start the program with `stillpoint run --engine spht`, or call sp_open with \"engine=spht\"");
    }
    if (session->detached.load(std::memory_order_acquire)) {
        return fail(SP_E_DETACHED, 0, "a child made by fork has no transactions: the pool belongs to its parent");
    }
    TransactionalMemory* const memory = stillpoint::spht::memory_of_session(*session);
    if (memory == nullptr) {
        return fail(SP_E_POOL_ENGINE, 0, "transactions need a pool of the engine spht; this one is of {}",
                    session->engine->pool_facts().engine_name);
    }
    return memory;
}

Result<Transaction*> begin(unsigned flags)
{
    if ((flags & ~known_flags) != 0) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "unknown flags {:#x} of a transaction", flags & ~known_flags);
    }
    if ((flags & (SP_SPHT_PLAIN_STORES | SP_SPHT_IRREVOCABLE)) == SP_SPHT_PLAIN_STORES) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "a transaction with plain stores must be irrevocable too");
    }
    const auto memory = memory_in_use();
    if (!memory) {
        return stillpoint::pass_on(memory.error());
    }
    Transaction* const own = (*memory)->own();
    if (own == nullptr) {
        return fail(SP_E_NO_MEMORY, 0, "no memory for a thread's transactions, or more than {} threads have some",
                    TransactionalMemory::threads_max);
    }
    if (own->is_running()) {
        own->begin_nested();
        return own;
    }
    const bool stores_plainly = (flags & SP_SPHT_PLAIN_STORES) != 0;
    own->count_attempt();
    own->begin({.read_only = (flags & SP_SPHT_READ_ONLY) != 0,
                .alone = (flags & SP_SPHT_IRREVOCABLE) != 0 || own->attempts() > SPHT_ATTEMPTS_MAX,
                .stores_plainly = stores_plainly,
                .privatizes = (flags & SP_SPHT_PRIVATIZES) != 0,
                .waits_for_reads = (flags & SP_SPHT_READS_MAY_BE_LOST) == 0});
    if (stores_plainly) {
        if (auto found = (*memory)->find_plain_stores(); !found) {
            own->abort();
            own->forget_attempts();
            return stillpoint::pass_on(found.error());
        }
    }
    return own;
}

int no_transaction() { return stillpoint::report(fail(SP_E_NO_TRANSACTION, 0, "the calling thread is not inside a transaction").value()); }

int is_read_only()
{
    return stillpoint::report(fail(SP_E_INVALID_ARGUMENT, 0,
                                   "the transaction was begun as one that only reads (SP_SPHT_READ_ONLY), and writes, allocates or frees")
                                  .value());
}

int too_many_actions() { return stillpoint::report(fail(SP_E_NO_MEMORY, 0, "the transaction has too many actions").value()); }

}  // namespace

STILLPOINT_API sp_spht_transaction* sp_spht_begin(unsigned flags, int* error)
{
    Transaction* const own = stillpoint::spht::own_in_use();
    constexpr unsigned simple_flags = SP_SPHT_READ_ONLY | SP_SPHT_READS_MAY_BE_LOST;
    if (own != nullptr && (flags & ~simple_flags) == 0 && !own->is_running() && own->attempts() < SPHT_ATTEMPTS_MAX) [[likely]] {
        own->count_attempt();
        own->begin({.read_only = (flags & SP_SPHT_READ_ONLY) != 0, .waits_for_reads = (flags & SP_SPHT_READS_MAY_BE_LOST) == 0});
        if (error != nullptr) {
            *error = SP_OK;
        }
        return own->handle();
    }
    const auto begun = begin(flags);
    const int code = begun ? static_cast<int>(SP_OK) : stillpoint::report(begun.error());
    if (error != nullptr) {
        *error = code;
    }
    return begun ? (*begun)->handle() : nullptr;
}

STILLPOINT_API int sp_spht_commit(sp_spht_transaction* transaction)
{
    if (transaction != nullptr && of(transaction).try_end_reads()) [[likely]] {
        return SP_OK;
    }
    if (transaction == nullptr || !of(transaction).is_running()) {
        return no_transaction();
    }
    Transaction& own = of(transaction);
    if (own.is_nested()) {
        own.end_nested();
        return own.is_doomed() ? SP_E_CONFLICT : SP_OK;
    }
    switch (own.commit()) {
    case Outcome::done: break;
    case Outcome::conflict: own.drop_actions(); return SP_E_CONFLICT;
    case Outcome::failed: {
        own.forget_attempts();
        const Failure failure = own.failure();
        if (own.was_rolled_back()) {
            own.run_actions(false);
        } else {
            own.drop_actions();  // The transaction has happened, and is not known to be durable.
        }
        return stillpoint::report(failure);
    }
    }
    own.forget_attempts();
    own.run_actions(true);
    return SP_OK;
}

STILLPOINT_API int sp_spht_abort(sp_spht_transaction* transaction, int tries_again)
{
    if (transaction == nullptr || !of(transaction).is_running()) {
        // A commit that met a conflict has rolled everything back already.
        if (transaction != nullptr && tries_again != 0) {
            return SP_OK;
        }
        return no_transaction();
    }
    Transaction& own = of(transaction);
    own.abort();
    if (tries_again != 0) {
        own.drop_actions();
        return SP_OK;
    }
    own.forget_attempts();
    own.run_actions(false);
    return SP_OK;
}

STILLPOINT_API sp_spht_transaction* sp_spht_current(void)
{
    Session* const session = stillpoint::open_session();
    TransactionalMemory* const memory = session != nullptr ? stillpoint::spht::memory_of_session(*session) : nullptr;
    Transaction* const own = memory != nullptr ? memory->own_if_any() : nullptr;
    return own != nullptr && own->is_running() ? own->handle() : nullptr;
}

STILLPOINT_API int sp_spht_run(int (*body)(sp_spht_transaction*, void*), void* argument, unsigned flags)
{
    while (true) {
        int error = SP_OK;
        sp_spht_transaction* const transaction = sp_spht_begin(flags, &error);
        if (transaction == nullptr) {
            return error;
        }
        const bool nested = of(transaction).is_nested();
        int result = body(transaction, argument);
        if (nested) {
            if (of(transaction).is_running()) {
                of(transaction).end_nested();
            }
            return result;
        }
        if (result == SP_OK) {
            result = sp_spht_commit(transaction);
            if (result != SP_E_CONFLICT) {
                return result;
            }
            continue;
        }
        const bool again = result == SP_E_CONFLICT;
        if (of(transaction).is_running()) {
            sp_spht_abort(transaction, again ? 1 : 0);
        }
        if (!again) {
            return result;
        }
    }
}

STILLPOINT_API int sp_spht_read_word(sp_spht_transaction* transaction, const uint64_t* place, uint64_t* value)
{
    return of(transaction).read(place, *value);
}

STILLPOINT_API int sp_spht_write_word(sp_spht_transaction* transaction, uint64_t* place, uint64_t value, uint64_t mask)
{
    if (of(transaction).is_read_only()) [[unlikely]] {
        return is_read_only();
    }
    return of(transaction).write(place, value, mask) ? SP_OK : SP_E_CONFLICT;
}

namespace {

bool is_word(const void* place, std::size_t bytes) { return bytes == 8 && reinterpret_cast<std::uintptr_t>(place) % 8 == 0; }

/// Calls visit(word, first byte in it, bytes of it, bytes before it) for each aligned word of [place, + bytes); until it is false.
template <class Visit>
int for_each_word(std::uintptr_t place, std::size_t bytes, Visit&& visit)
{
    for (std::size_t done = 0; done < bytes;) {
        const std::uintptr_t word = (place + done) & ~std::uintptr_t{7};
        const std::size_t first = place + done - word;
        const std::size_t here = std::min(bytes - done, 8 - first);
        if (!visit(word, first, here, done)) {
            return SP_E_CONFLICT;
        }
        done += here;
    }
    return SP_OK;
}

}  // namespace

STILLPOINT_API int sp_spht_read(sp_spht_transaction* transaction, const void* place, void* value, size_t bytes)
{
    Transaction& own = of(transaction);
    if (is_word(place, bytes)) [[likely]] {
        std::uint64_t found = 0;
        const int code = own.read(static_cast<const std::uint64_t*>(place), found);
        std::memcpy(value, &found, sizeof found);
        return code;
    }
    return for_each_word(reinterpret_cast<std::uintptr_t>(place), bytes,
                         [&](std::uintptr_t word, std::size_t first, std::size_t here, std::size_t done) {
                             std::uint64_t found = 0;
                             if (own.read(reinterpret_cast<const std::uint64_t*>(word), found) != SP_OK) {
                                 return false;
                             }
                             std::memcpy(static_cast<std::byte*>(value) + done, reinterpret_cast<const std::byte*>(&found) + first, here);
                             return true;
                         });
}

STILLPOINT_API int sp_spht_write(sp_spht_transaction* transaction, void* place, const void* value, size_t bytes)
{
    Transaction& own = of(transaction);
    if (own.is_read_only()) {
        return is_read_only();
    }
    if (is_word(place, bytes)) [[likely]] {
        std::uint64_t wanted = 0;
        std::memcpy(&wanted, value, sizeof wanted);
        return own.write(static_cast<std::uint64_t*>(place), wanted, ~std::uint64_t{0}) ? SP_OK : SP_E_CONFLICT;
    }
    return for_each_word(reinterpret_cast<std::uintptr_t>(place), bytes,
                         [&](std::uintptr_t word, std::size_t first, std::size_t here, std::size_t done) {
                             std::uint64_t wanted = 0;
                             std::uint64_t mask = 0;
                             std::memcpy(reinterpret_cast<std::byte*>(&wanted) + first, static_cast<const std::byte*>(value) + done, here);
                             std::memset(reinterpret_cast<std::byte*>(&mask) + first, 0xff, here);
                             return own.write(reinterpret_cast<std::uint64_t*>(word), wanted, mask);
                         });
}

STILLPOINT_API void* sp_spht_malloc(sp_spht_transaction* transaction, size_t bytes)
{
    return sp_spht_aligned_alloc(transaction, 16, bytes);
}

STILLPOINT_API void* sp_spht_aligned_alloc(sp_spht_transaction* transaction, size_t alignment_bytes, size_t bytes)
{
    if (!stillpoint::is_alignment(alignment_bytes)) {
        return nullptr;
    }
    if (of(transaction).is_read_only()) {
        static_cast<void>(is_read_only());
        errno = EINVAL;
        return nullptr;
    }
    void* const block = of(transaction).allocate(bytes, alignment_bytes);
    if (block == nullptr) {
        stillpoint::report_as_errno(Heap::last_failure());
    }
    return block;
}

STILLPOINT_API int sp_spht_free(sp_spht_transaction* transaction, void* block)
{
    if (of(transaction).is_read_only()) {
        return is_read_only();
    }
    if (block == nullptr || of(transaction).deallocate(block)) {
        return SP_OK;
    }
    return stillpoint::report(fail(SP_E_INVALID_ARGUMENT, 0,
                                   "{}: no live block of durable memory begins there, or this transaction has freed it",
                                   static_cast<const void*>(block))
                                  .value());
}

STILLPOINT_API int sp_spht_on_commit(sp_spht_transaction* transaction, void (*action)(void*), void* argument)
{
    return of(transaction).on_commit(action, argument) ? SP_OK : too_many_actions();
}

STILLPOINT_API int sp_spht_on_abort(sp_spht_transaction* transaction, void (*action)(void*), void* argument)
{
    return of(transaction).on_abort(action, argument) ? SP_OK : too_many_actions();
}

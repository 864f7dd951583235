// The C API of the engine breeze (stillpoint/breeze.h).

#include <cstring>
#include <new>

#include "engines/breeze/open_pools.hpp"
#include "runtime/api_export.hpp"
#include "runtime/session_state.hpp"
#include "stillpoint/breeze.h"

using stillpoint::fail;
using stillpoint::pass_on;
using stillpoint::report;
using stillpoint::Result;

namespace breeze = stillpoint::breeze;

namespace {

NVM_POOL* handle_of(breeze::BreezePool* pool) noexcept { return reinterpret_cast<NVM_POOL*>(pool); }

int code_of(const Result<void>& result) noexcept { return result ? int{SP_OK} : report(result.error()); }

/// The thread's transaction, which is on that pool. Errors: not_open, no_transaction, detached.
Result<breeze::Transaction*> transaction_on(const NVM_POOL* pool) noexcept
{
    const breeze::OwnTransaction& own = breeze::own_transaction;
    if (own.transaction != nullptr && static_cast<const void*>(own.pool) == static_cast<const void*>(pool)) {
        return own.transaction;
    }
    const auto found = breeze::open_pool(pool);
    if (!found) {
        return pass_on(found.error());
    }
    return fail(SP_E_NO_TRANSACTION, 0, "{}: the thread has no transaction on this pool: call nvm_tx_begin", (*found)->path());
}

/// The offset of the block whose object begins there. Errors: not_open, invalid_argument.
Result<std::uint64_t> block_at(const NVM_POOL* pool, const void* object) noexcept
{
    const auto found = breeze::open_pool(pool);
    if (!found) {
        return pass_on(found.error());
    }
    breeze::PoolParts& parts = (*found)->parts();
    const std::uint64_t block = parts.target_of(reinterpret_cast<std::uintptr_t>(object));
    const bool begins_there = block != 0 && parts.bytes_of(block) == object;
    if (begins_there && !parts.allocated(block) && parts.type_of(block) != nullptr) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "{}: object {} of type {}, at {}, was freed", (*found)->path(), block,
                    parts.type_of(block)->name, object);
    }
    if (!begins_there || !parts.allocated(block)) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "{}: no object begins at {}", (*found)->path(), object);
    }
    return block;
}

template <class Open>
NVM_POOL* opened(const char* path, const char* call, Open&& open) noexcept
{
    if (path == nullptr || *path == '\0') {
        report(fail(SP_E_INVALID_ARGUMENT, 0, "{} needs a path", call).value());
        return nullptr;
    }
    try {
        const auto pool = open();
        if (!pool) {
            report(pool.error());
            return nullptr;
        }
        return handle_of(*pool);
    } catch (const std::bad_alloc&) {
        report(fail(SP_E_NO_MEMORY, 0, "no memory to open {}", path).value());
        return nullptr;
    }
}

/// Ends the thread's outermost transaction.
void end_own() noexcept
{
    breeze::OwnTransaction& own = breeze::own_transaction;
    own.pool->end(*own.transaction);
    own = {};
}

int log_at(const void* address, std::size_t size_bytes, breeze::CodePlace place, bool waits) noexcept
{
    const breeze::OwnTransaction& own = breeze::own_transaction;
    if (size_bytes == 0) {
        return SP_OK;
    }
    if (own.transaction != nullptr && own.pool->parts().memory.contains(reinterpret_cast<std::uintptr_t>(address))) {
        return code_of(own.transaction->log_range(own.pool->parts().memory.offset_of(address), size_bytes, place, waits));
    }
    breeze::BreezePool* const pool = breeze::pool_at(address);
    if (pool == nullptr) {
        return SP_OK;
    }
    if (own.transaction == nullptr) {
        return report(fail(SP_E_NO_TRANSACTION, 0, "{}: a store to {} outside of a transaction", pool->path(), address).value());
    }
    const auto refusal = fail(SP_E_INVALID_ARGUMENT, 0,
                              "a transaction on {} stores to {}, which is of the pool {}: a transaction has one pool", own.pool->path(),
                              address, pool->path());
    own.transaction->refuse(refusal.value());
    return report(refusal.value());
}

}  // namespace

STILLPOINT_API int nvm_type_register(nvm_type* type)
{
    if (type == nullptr) {
        return report(fail(SP_E_INVALID_ARGUMENT, 0, "nvm_type_register needs a type").value());
    }
    try {
        return code_of(breeze::registered_types::add(*type));
    } catch (const std::bad_alloc&) {
        return report(fail(SP_E_NO_MEMORY, 0, "no memory for a type").value());
    }
}

STILLPOINT_API NVM_POOL* nvm_pool_create_with(const char* path, size_t size_bytes, const nvm_options* options)
{
    return opened(path, "nvm_pool_create", [=] { return breeze::create_pool(path, size_bytes, options); });
}

STILLPOINT_API NVM_POOL* nvm_pool_create(const char* path, size_t size_bytes) { return nvm_pool_create_with(path, size_bytes, nullptr); }

STILLPOINT_API NVM_POOL* nvm_pool_open_with(const char* path, const nvm_options* options)
{
    return opened(path, "nvm_pool_open", [=] { return breeze::open_pool_file(path, options); });
}

STILLPOINT_API NVM_POOL* nvm_pool_open(const char* path) { return nvm_pool_open_with(path, nullptr); }

STILLPOINT_API int nvm_pool_close(NVM_POOL* pool)
{
    const auto found = breeze::open_pool(pool);
    return found ? code_of(breeze::close_pool(**found)) : report(found.error());
}

STILLPOINT_API NVM_POOL* nvm_pool_of(const void* address) { return handle_of(breeze::pool_at(address)); }

STILLPOINT_API int nvm_pool_set_root(NVM_POOL* pool, const void* object)
{
    const auto transaction = transaction_on(pool);
    if (!transaction) {
        return report(transaction.error());
    }
    const auto block = object == nullptr ? Result<std::uint64_t>(0) : block_at(pool, object);
    return block ? code_of((*transaction)->set_root(*block)) : report(block.error());
}

STILLPOINT_API void* nvm_pool_root(NVM_POOL* pool)
{
    const auto found = breeze::open_pool(pool);
    if (!found) {
        report(found.error());
        return nullptr;
    }
    const breeze::PoolParts& parts = (*found)->parts();
    const std::uint64_t block = breeze::load_word(parts.memory.header().root);
    return block == 0 ? nullptr : parts.bytes_of(block);
}

STILLPOINT_API void* nvm_alloc(NVM_POOL* pool, uint32_t type, size_t size_bytes)
{
    const auto transaction = transaction_on(pool);
    if (!transaction) {
        report(transaction.error());
        return nullptr;
    }
    try {
        const auto object = (*transaction)->allocate(type, size_bytes, {.code = __builtin_return_address(0)});
        if (object) {
            return *object;
        }
        report(object.error());
    } catch (const std::bad_alloc&) {
        report(fail(SP_E_NO_MEMORY, 0, "no memory for a type").value());
    }
    return nullptr;
}

STILLPOINT_API int nvm_free(NVM_POOL* pool, void* object)
{
    const auto transaction = transaction_on(pool);
    if (!transaction) {
        return report(transaction.error());
    }
    const auto block = block_at(pool, object);
    return block ? code_of((*transaction)->free_block(*block)) : report(block.error());
}

STILLPOINT_API int nvm_object(NVM_POOL* pool, const void* object, nvm_object_facts* facts)
{
    const auto block = block_at(pool, object);
    if (!block) {
        return report(block.error());
    }
    const breeze::ObjectHeader& header = breeze::open_pool(pool).value()->parts().memory.object(*block);
    const std::uint64_t counts = breeze::load_word(header.counts);
    *facts = {breeze::type_in(counts), breeze::references_in(counts), header.size, header.version};
    return SP_OK;
}

STILLPOINT_API int nvm_weak_set(NVM_POOL* pool, nvm_weak* weak, const void* object)
{
    if (object == nullptr) {
        const int logged = nvm_log(weak, sizeof *weak);
        if (logged == SP_OK) {
            *weak = {};
        }
        return logged;
    }
    nvm_object_facts facts;
    if (const int found = nvm_object(pool, object, &facts); found != SP_OK) {
        return found;
    }
    if (const int logged = nvm_log(weak, sizeof *weak); logged != SP_OK) {
        return logged;
    }
    *weak = {const_cast<void*>(object), facts.version};
    return SP_OK;
}

STILLPOINT_API void* nvm_weak_get(NVM_POOL* pool, const nvm_weak* weak)
{
    if (weak->object == nullptr) {
        return nullptr;
    }
    const auto block = block_at(pool, weak->object);
    if (!block) {
        return nullptr;
    }
    const breeze::ObjectHeader& header = breeze::open_pool(pool).value()->parts().memory.object(*block);
    return breeze::load_word(header.version) == weak->version ? weak->object : nullptr;
}

STILLPOINT_API int nvm_tx_begin(NVM_POOL* pool)
{
    breeze::OwnTransaction& own = breeze::own_transaction;
    const auto found = breeze::open_pool(pool);
    if (!found) {
        return report(found.error());
    }
    if (own.transaction != nullptr && own.pool != *found) {
        return report(fail(SP_E_INVALID_ARGUMENT, 0,
                           "a transaction on {} is running, and another one on {} cannot begin in it: a transaction has one pool",
                           own.pool->path(), (*found)->path())
                          .value());
    }
    if (own.transaction == nullptr) {
        own = {*found, &(*found)->begin(), 0};
    }
    ++own.depth;
    return SP_OK;
}

static int commit(NVM_POOL* pool, bool waits)
{
    const auto transaction = transaction_on(pool);
    if (!transaction) {
        return report(transaction.error());
    }
    if (--breeze::own_transaction.depth != 0) {
        return SP_OK;
    }
    const auto committed = (*transaction)->commit(waits);
    end_own();
    return code_of(committed);
}

STILLPOINT_API int nvm_tx_commit(NVM_POOL* pool) { return commit(pool, true); }

STILLPOINT_API int nvm_tx_commit_early(NVM_POOL* pool) { return commit(pool, false); }

STILLPOINT_API int nvm_wait_durable(NVM_POOL* pool)
{
    const auto found = breeze::open_pool(pool);
    return found ? code_of((*found)->parts().memory.wait_durable()) : report(found.error());
}

STILLPOINT_API int nvm_tx_abort(NVM_POOL* pool)
{
    const auto transaction = transaction_on(pool);
    if (!transaction) {
        return report(transaction.error());
    }
    if (--breeze::own_transaction.depth != 0) {
        (*transaction)->refuse(fail(SP_E_ABORTED, 0, "an inner transaction was aborted").value());
        return SP_OK;
    }
    (*transaction)->roll_back();
    end_own();
    return SP_OK;
}

STILLPOINT_API int nvm_log(const void* address, size_t size_bytes)
{
    return log_at(address, size_bytes, {.code = __builtin_return_address(0)}, true);
}

STILLPOINT_API int nvm_log_ahead(const void* address, size_t size_bytes)
{
    return log_at(address, size_bytes, {.code = __builtin_return_address(0)}, false);
}

STILLPOINT_API void nvm_log_wait(void)
{
    if (breeze::Transaction* const transaction = breeze::own_transaction.transaction; transaction != nullptr) {
        transaction->log().wait();
    }
}

STILLPOINT_API int nvm_log_at(const void* address, size_t size_bytes, const char* file, int line)
{
    return log_at(address, size_bytes, {nullptr, file, line}, true);
}

STILLPOINT_API int nvm_drain(NVM_POOL* pool)
{
    const auto found = breeze::open_pool(pool);
    if (!found) {
        return report(found.error());
    }
    (*found)->parts().counts.drain();
    return SP_OK;
}

STILLPOINT_API int nvm_collect(NVM_POOL* pool, nvm_collection* result)
{
    const auto found = breeze::open_pool(pool);
    if (!found) {
        return report(found.error());
    }
    if (breeze::own_transaction.pool == *found) {
        return report(
            fail(SP_E_INSIDE_FASE, 0, "{}: a collection waits for the thread's own transaction: end it first", (*found)->path()).value());
    }
    const auto collected = (*found)->collect();
    if (!collected) {
        return report(collected.error());
    }
    if (result != nullptr) {
        *result = {collected->kept, collected->freed, collected->bytes_freed, collected->stop_ns};
    }
    return SP_OK;
}

STILLPOINT_API int nvm_facts(NVM_POOL* pool, nvm_pool_facts* facts)
{
    const auto found = breeze::open_pool(pool);
    if (!found) {
        return report(found.error());
    }
    breeze::PoolParts& parts = (*found)->parts();
    const breeze::OpenFigures& figures = (*found)->figures();
    *facts = {};
    facts->base_address = parts.base();
    facts->generation = parts.generation;
    facts->objects = parts.zones.objects();
    facts->objects_bytes = parts.zones.bytes_in_use();
    facts->data_bytes = parts.zones.count() * breeze::zone_bytes;
    facts->damaged_objects = parts.damaged_objects;
    facts->transactions_undone = figures.transactions_undone;
    facts->pointers_rewritten = figures.pointers_rewritten;
    facts->opening_ns = figures.opening_ns;
    facts->objects_collected = parts.counts.freed();
    return SP_OK;
}

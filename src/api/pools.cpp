// The C API: several pools in one process. A call that takes a pool is the one without it, by a thread that acts on that pool meanwhile.

#include <cerrno>
#include <new>

#include "api/options.hpp"
#include "api/session.hpp"
#include "runtime/api_export.hpp"
#include "runtime/session_state.hpp"
#include "stillpoint/stillpoint.h"

using stillpoint::fail;
using stillpoint::InSession;
using stillpoint::Session;
namespace sessions = stillpoint::sessions;

namespace {

sp_pool* pool_of(Session* session) noexcept { return reinterpret_cast<sp_pool*>(session); }

/// The session of the program's pointer; nullptr, and sp_last_error() says so: it is not an open pool.
Session* session_for(sp_pool* pool) noexcept
{
    auto* const wanted = reinterpret_cast<Session*>(pool);
    if (wanted != nullptr && stillpoint::is_open(wanted)) {
        return wanted;
    }
    stillpoint::report(
        fail(SP_E_NOT_OPEN, 0, "{} is not an open pool: open one with sp_pool_open", static_cast<const void*>(pool)).value());
    return nullptr;
}

/// call() on that pool; without one, `otherwise`.
template <class Call, class Value>
Value in_pool(sp_pool* pool, Value otherwise, Call&& call) noexcept
{
    Session* const session = session_for(pool);
    if (session == nullptr) {
        return otherwise;
    }
    const InSession in(*session);
    return call();
}

/// As in_pool, for calls that return a pointer: errno is set too.
template <class Call>
void* memory_in_pool(sp_pool* pool, Call&& call) noexcept
{
    Session* const session = session_for(pool);
    if (session == nullptr) {
        errno = EINVAL;
        return nullptr;
    }
    const InSession in(*session);
    return call();
}

}  // namespace

STILLPOINT_API sp_pool* sp_pool_open(const char* path, const char* options_text)
{
    if (path == nullptr || *path == '\0') {
        stillpoint::report(fail(SP_E_INVALID_ARGUMENT, 0, "sp_pool_open needs a path").value());
        return nullptr;
    }
    try {
        auto options = stillpoint::options_of_call(path, options_text);
        if (!options) {
            stillpoint::report(options.error());
            return nullptr;
        }
        auto opened = stillpoint::session_open_further(*options);
        if (!opened) {
            stillpoint::report(opened.error());
            return nullptr;
        }
        return pool_of(*opened);
    } catch (const std::bad_alloc&) {
        stillpoint::report(fail(SP_E_NO_MEMORY, ENOMEM, "no memory to open {}", path).value());
        return nullptr;
    }
}

STILLPOINT_API int sp_pool_close(sp_pool* pool)
{
    Session* const session = session_for(pool);
    if (session == nullptr) {
        return SP_E_NOT_OPEN;
    }
    auto closed = stillpoint::session_close_by_caller(*session);
    return closed ? SP_OK : stillpoint::report(closed.error());
}

STILLPOINT_API sp_pool* sp_pool_default(void) { return pool_of(stillpoint::default_session()); }

STILLPOINT_API sp_pool* sp_pool_current(void) { return pool_of(stillpoint::open_session()); }

STILLPOINT_API sp_pool* sp_pool_of(const void* address)
{
    Session* const session = stillpoint::session_of(address);
    const auto wanted = reinterpret_cast<std::uintptr_t>(address);
    return session != nullptr && wanted >= session->image_begin && wanted < session->image_end ? pool_of(session) : nullptr;
}

STILLPOINT_API int sp_pool_use(sp_pool* pool, sp_pool** before)
{
    Session* const session = pool == nullptr ? nullptr : session_for(pool);
    if (pool != nullptr && session == nullptr) {
        return SP_E_NOT_OPEN;
    }
    if (before != nullptr) {
        *before = pool_of(sessions::chosen);
    }
    sessions::chosen = session;
    return SP_OK;
}

STILLPOINT_API sp_start sp_pool_start_kind(sp_pool* pool)
{
    return in_pool(pool, SP_START_VOLATILE, [] { return sp_start_kind(); });
}

STILLPOINT_API void* sp_pool_malloc(sp_pool* pool, size_t size_bytes)
{
    return memory_in_pool(pool, [=] { return sp_malloc(size_bytes); });
}

STILLPOINT_API void* sp_pool_calloc(sp_pool* pool, size_t count, size_t size_bytes)
{
    return memory_in_pool(pool, [=] { return sp_calloc(count, size_bytes); });
}

STILLPOINT_API void* sp_pool_aligned_alloc(sp_pool* pool, size_t alignment_bytes, size_t size_bytes)
{
    return memory_in_pool(pool, [=] { return sp_aligned_alloc(alignment_bytes, size_bytes); });
}

STILLPOINT_API void* sp_pool_root(sp_pool* pool, const char* handle, size_t size_bytes)
{
    return memory_in_pool(pool, [=] { return sp_root(handle, size_bytes); });
}

STILLPOINT_API void* sp_pool_root_find(sp_pool* pool, const char* handle, size_t* size_bytes)
{
    return memory_in_pool(pool, [=] { return sp_root_find(handle, size_bytes); });
}

STILLPOINT_API int sp_pool_root_delete(sp_pool* pool, const char* handle)
{
    return in_pool(pool, int{SP_E_NOT_OPEN}, [=] { return sp_root_delete(handle); });
}

STILLPOINT_API uint64_t sp_pool_epoch(sp_pool* pool)
{
    return in_pool(pool, uint64_t{0}, [] { return sp_epoch(); });
}

STILLPOINT_API uint64_t sp_pool_durable_epoch(sp_pool* pool)
{
    return in_pool(pool, uint64_t{0}, [] { return sp_durable_epoch(); });
}

STILLPOINT_API int sp_pool_wait_durable(sp_pool* pool, uint64_t epoch, int64_t timeout_ms)
{
    return in_pool(pool, int{SP_E_NOT_OPEN}, [=] { return sp_wait_durable(epoch, timeout_ms); });
}

STILLPOINT_API int sp_pool_checkpoint(sp_pool* pool)
{
    return in_pool(pool, int{SP_E_NOT_OPEN}, [] { return sp_checkpoint(); });
}

STILLPOINT_API int sp_pool_copy(sp_pool* pool, const char* new_path)
{
    return in_pool(pool, int{SP_E_NOT_OPEN}, [=] { return sp_copy(new_path); });
}

STILLPOINT_API int sp_pool_copy_since(sp_pool* pool, const char* new_path, const char* base_path)
{
    return in_pool(pool, int{SP_E_NOT_OPEN}, [=] { return sp_copy_since(new_path, base_path); });
}

STILLPOINT_API int sp_pool_heap_stats(sp_pool* pool, sp_heap_statistics* out)
{
    return in_pool(pool, int{SP_E_NOT_OPEN}, [=] { return sp_heap_stats(out); });
}

STILLPOINT_API int sp_pool_statistic(sp_pool* pool, const char* name, uint64_t* value)
{
    return in_pool(pool, int{SP_E_NOT_OPEN}, [=] { return sp_statistic(name, value); });
}

// The C API: durable memory. Without a pool each call is libc's own.

#include <cerrno>
#include <cstdlib>
#include <malloc.h>

#include "core/store_marks.hpp"
#include "runtime/api_export.hpp"
#include "runtime/dying_memory.hpp"
#include "runtime/fase_gate.hpp"
#include "runtime/named_objects.hpp"
#include "runtime/session_process.hpp"
#include "runtime/session_state.hpp"
#include "runtime/volatile_memory.hpp"
#include "runtime/volatile_roots.hpp"
#include "stillpoint/stillpoint.h"

using FaseGuard = stillpoint::fase::InlineGuard;
using stillpoint::fail;
using stillpoint::Heap;
using stillpoint::Session;
using stillpoint::used_session;

namespace session_process = stillpoint::session_process;

namespace {

/// Returns `block` to the caller of a heap call; without memory, sets the error.
void* checked(void* block) noexcept
{
    if (block == nullptr) {
        stillpoint::report_as_errno(Heap::last_failure());
    }
    return block;
}

/// Checks as above for libc's calls, which serve a program that has no pool.
void* checked_libc(void* block, size_t size_bytes) noexcept
{
    return block != nullptr ? block : stillpoint::no_volatile_memory(size_bytes);
}

}  // namespace

STILLPOINT_API void* sp_malloc(size_t size_bytes)
{
    if (session_process::is_elsewhere()) [[unlikely]] {
        return session_process::there([=] { return sp_malloc(size_bytes); });
    }
    Session* const session = used_session();
    if (session == nullptr || session->detached.load(std::memory_order_relaxed)) [[unlikely]] {
        stillpoint::warn_if_not_durable(session);
        if (session == nullptr) {
            return checked_libc(std::malloc(size_bytes), size_bytes);
        }
    }
    const FaseGuard fase;
    return checked(session->heap->allocate(size_bytes));
}

STILLPOINT_API void* sp_calloc(size_t count, size_t size_bytes)
{
    if (session_process::is_elsewhere()) [[unlikely]] {
        return session_process::there([=] { return sp_calloc(count, size_bytes); });
    }
    size_t total = 0;
    if (__builtin_mul_overflow(count, size_bytes, &total)) {
        stillpoint::report_as_errno(
            fail(SP_E_NO_MEMORY, ENOMEM, "{} objects of {} bytes are more memory than is possible", count, size_bytes).value());
        return nullptr;
    }
    Session* const session = used_session();
    stillpoint::warn_if_not_durable(session);
    if (session == nullptr) {
        return checked_libc(std::calloc(count, size_bytes), total);
    }
    const FaseGuard fase;
    return checked(session->heap->allocate_zeroed(total));
}

STILLPOINT_API void* sp_aligned_alloc(size_t alignment_bytes, size_t size_bytes)
{
    if (session_process::is_elsewhere()) [[unlikely]] {
        return session_process::there([=] { return sp_aligned_alloc(alignment_bytes, size_bytes); });
    }
    if (!stillpoint::is_alignment(alignment_bytes)) {
        return nullptr;
    }
    Session* const session = used_session();
    stillpoint::warn_if_not_durable(session);
    if (session == nullptr) {
        return stillpoint::allocate_volatile(alignment_bytes, size_bytes);
    }
    const FaseGuard fase;
    return checked(session->heap->allocate_aligned(alignment_bytes, size_bytes));
}

namespace {

/// Also the first block that a process frees: whether it has a name is not known before.
[[gnu::cold]] [[gnu::noinline]] void free_named(Session& session, void* block) noexcept
{
    const FaseGuard fase;
    stillpoint::free_with_names(session, block);
}

}  // namespace

STILLPOINT_API void sp_free(void* block)
{
    if (block == nullptr) {
        return;
    }
    Session* const session = stillpoint::session_of(block);
    if (session != nullptr && session_process::is_elsewhere()) [[unlikely]] {
        session_process::there([=] { return sp_free(block), 0; });
        return;
    }
    if (session == nullptr) {
        if (stillpoint::may_have_volatile_name(block)) [[unlikely]] {
            stillpoint::forget_volatile_root_of(block);
        }
        std::free(block);
        return;
    }
    if (stillpoint::may_have_name(*session, block)) [[unlikely]] {
        free_named(*session, block);
        return;
    }
    const FaseGuard fase;
    stillpoint::release_block(*session->heap, block);
}

STILLPOINT_API void* sp_realloc(void* block, size_t size_bytes)
{
    if (block == nullptr) {
        return sp_malloc(size_bytes);
    }
    Session* const session = stillpoint::session_of(block);
    if (session == nullptr) {
        const bool may_have_name = stillpoint::may_have_volatile_name(block);
        const auto old_address = reinterpret_cast<std::uintptr_t>(block);
        void* const moved = std::realloc(block, size_bytes);
        if (may_have_name && (moved != nullptr || size_bytes == 0)) [[unlikely]] {
            stillpoint::move_volatile_root(old_address, {moved, size_bytes});
        }
        return moved != nullptr || size_bytes == 0 ? moved : stillpoint::no_volatile_memory(size_bytes);
    }
    if (session_process::is_elsewhere()) [[unlikely]] {
        return session_process::there([=] { return sp_realloc(block, size_bytes); });
    }
    if (size_bytes == 0) {
        sp_free(block);
        return nullptr;
    }
    const FaseGuard fase;
    if (stillpoint::may_have_name(*session, block)) [[unlikely]] {
        return checked(stillpoint::reallocate_named(*session, block, size_bytes, &stillpoint::memory_dies));
    }
    return checked(session->heap->reallocate(block, size_bytes, &stillpoint::memory_dies));
}

STILLPOINT_API size_t sp_usable_size(const void* block)
{
    if (block == nullptr) {
        return 0;
    }
    Session* const session = stillpoint::session_of(block);
    if (session == nullptr) {
        return malloc_usable_size(const_cast<void*>(block));
    }
    if (session_process::is_elsewhere()) [[unlikely]] {
        return session_process::there([=] { return sp_usable_size(block); });
    }
    return session->heap->usable_size(block);
}

STILLPOINT_API int sp_heap_stats(sp_heap_statistics* out)
{
    if (out == nullptr) {
        return stillpoint::report(fail(SP_E_INVALID_ARGUMENT, 0, "sp_heap_stats needs a place for the figures").value());
    }
    Session* const session = used_session();
    if (session == nullptr) {
        return stillpoint::report(fail(SP_E_NOT_OPEN, 0, "no pool is open: there is no durable heap").value());
    }
    if (session_process::is_elsewhere()) [[unlikely]] {
        *out = session_process::there([=] { return session->heap->statistics(); });
        return SP_OK;
    }
    const FaseGuard fase;
    stillpoint::announce_store(out, sizeof *out);
    *out = session->heap->statistics();
    stillpoint::note_program_store(out, sizeof *out);
    return SP_OK;
}

// crashed, nvmalloc and nvrecover, as [PMThreads, Figure 2] has them, on the objects that sp_root_find finds, with every engine.

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "core/store_marks.hpp"
#include "runtime/api_export.hpp"
#include "runtime/dying_memory.hpp"
#include "runtime/fase.hpp"
#include "runtime/named_objects.hpp"
#include "runtime/session_process.hpp"
#include "runtime/session_state.hpp"
#include "runtime/volatile_roots.hpp"
#include "stillpoint/nvthreads.h"
#include "stillpoint/stillpoint.h"

using stillpoint::FaseGuard;
using stillpoint::Session;
using stillpoint::used_session;

namespace session_process = stillpoint::session_process;

STILLPOINT_API bool crashed(void) { return sp_start_kind() == SP_START_CRASHED; }

STILLPOINT_API void* nvmalloc(size_t size_bytes, const char* handle)
{
    if (session_process::is_elsewhere()) [[unlikely]] {
        return session_process::there([=, name = session_process::PassedText(handle)] { return nvmalloc(size_bytes, name.get()); });
    }
    if (handle == nullptr) {
        return sp_calloc(1, size_bytes);
    }
    if (auto valid = stillpoint::check_handle(handle); !valid) {
        stillpoint::report_as_errno(valid.error());
        return nullptr;
    }
    Session* const session = used_session();
    // One FASE: a crash leaves the old block with the name, or the new one, and leaks neither.
    const FaseGuard fase;
    void* const block = sp_calloc(1, size_bytes == 0 ? 1 : size_bytes);
    if (block == nullptr) {
        return nullptr;
    }
    if (session == nullptr) {
        const auto old = stillpoint::find_volatile_root(handle);
        if (!stillpoint::put_volatile_root(handle, {block, size_bytes})) {
            sp_free(block);
            stillpoint::report_as_errno(stillpoint::fail(SP_E_NO_MEMORY, ENOMEM, "no memory for \"{}\"", handle).value());
            return nullptr;
        }
        sp_free(old.address);
        return block;
    }
    const std::lock_guard guard(session->directory_lock);
    const auto old = session->directory->find(handle);
    const auto named = old ? stillpoint::move_name(*session, *old, block, size_bytes)
                           : stillpoint::insert_name(*session, handle, block, size_bytes);
    if (!named) {
        session->heap->deallocate(block);
        stillpoint::report_as_errno(named.error());
        return nullptr;
    }
    if (old) {
        stillpoint::release_block(*session->heap, reinterpret_cast<void*>(old->address));
    }
    return block;
}

STILLPOINT_API void* nvrecover(void* destination, size_t size_bytes, const char* handle)
{
    size_t found_bytes = 0;
    void* const found = sp_root_find(handle, &found_bytes);
    if (found != nullptr && destination != nullptr) {
        stillpoint::announce_store(destination, std::min(size_bytes, found_bytes));
        std::memcpy(destination, found, std::min(size_bytes, found_bytes));
        stillpoint::note_program_store(destination, std::min(size_bytes, found_bytes));
    }
    return found;
}

STILLPOINT_API void nvfree(void* block) { sp_free(block); }

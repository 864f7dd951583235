// The C API: named objects.

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <string_view>

#include "core/store_marks.hpp"
#include "runtime/api_export.hpp"
#include "runtime/dying_memory.hpp"
#include "runtime/fase.hpp"
#include "runtime/named_objects.hpp"
#include "runtime/session_process.hpp"
#include "runtime/session_state.hpp"
#include "runtime/volatile_roots.hpp"
#include "stillpoint/stillpoint.h"

using stillpoint::Directory;
using stillpoint::fail;
using stillpoint::Failure;
using stillpoint::FaseGuard;
using stillpoint::Heap;
using stillpoint::Result;
using stillpoint::Session;
using stillpoint::used_session;

namespace session_process = stillpoint::session_process;

STILLPOINT_API void* sp_root(const char* handle, size_t size_bytes)
{
    if (session_process::is_elsewhere()) [[unlikely]] {
        return session_process::there([=, name = session_process::PassedText(handle)] { return sp_root(name.get(), size_bytes); });
    }
    return stillpoint::named_object(handle, size_bytes, alignof(std::max_align_t));
}

namespace {

Result<stillpoint::DirectoryEntry> find_root(Session* session, const char* handle)
{
    if (auto valid = stillpoint::check_handle(handle); !valid) {
        return stillpoint::pass_on(valid.error());
    }
    std::optional<stillpoint::DirectoryEntry> entry;
    if (session == nullptr) {
        if (const auto root = stillpoint::find_volatile_root(handle); root.address != nullptr) {
            entry.emplace();
            entry->address = reinterpret_cast<std::uintptr_t>(root.address);
            entry->size_bytes = root.size_bytes;
        }
    } else {
        entry = session->directory->find(handle);
    }
    if (!entry) {
        return fail(SP_E_HANDLE_MISSING, 0, "there is no durable object named \"{}\"", handle);
    }
    if (session != nullptr && !stillpoint::is_live_block(*session, *entry)) {
        return stillpoint::no_live_block(handle);
    }
    return *entry;
}

}  // namespace

namespace {

void* find_root_elsewhere(const char* handle, size_t* size_bytes)
{
    struct Found {
        void* object;
        size_t size_bytes;
    };
    const Found found = session_process::there([name = session_process::PassedText(handle)] {
        Found there{};
        there.object = sp_root_find(name.get(), &there.size_bytes);
        return there;
    });
    if (found.object != nullptr && size_bytes != nullptr) {
        *size_bytes = found.size_bytes;
    }
    return found.object;
}

}  // namespace

STILLPOINT_API void* sp_root_find(const char* handle, size_t* size_bytes)
{
    if (session_process::is_elsewhere()) [[unlikely]] {
        return find_root_elsewhere(handle, size_bytes);
    }
    Session* const session = used_session();
    const auto entry = [&]() -> Result<stillpoint::DirectoryEntry> {
        if (session == nullptr) {
            return find_root(session, handle);
        }
        const FaseGuard fase;
        const std::lock_guard guard(session->directory_lock);
        return find_root(session, handle);
    }();
    if (!entry) {
        stillpoint::report_as_errno(entry.error());
        return nullptr;
    }
    if (size_bytes != nullptr) {
        stillpoint::announce_store(size_bytes, sizeof *size_bytes);
        *size_bytes = entry->size_bytes;
        stillpoint::note_program_store(size_bytes, sizeof *size_bytes);
    }
    return reinterpret_cast<void*>(entry->address);
}

STILLPOINT_API int sp_root_delete(const char* handle)
{
    if (session_process::is_elsewhere()) [[unlikely]] {
        return session_process::there([name = session_process::PassedText(handle)] { return sp_root_delete(name.get()); });
    }
    Session* const session = used_session();
    if (session == nullptr) {
        if (auto found = find_root(session, handle); !found) {
            return stillpoint::report(found.error());
        }
        std::free(stillpoint::erase_volatile_root(handle).address);
        return SP_OK;
    }
    const FaseGuard fase;
    const std::lock_guard guard(session->directory_lock);
    const stillpoint::StoreGroup group;
    auto entry = find_root(session, handle);
    if (!entry) {
        return stillpoint::report(entry.error());
    }
    auto* const block = reinterpret_cast<void*>(entry->address);
    if (auto erased = stillpoint::erase_name(*session, *entry); !erased) {
        return stillpoint::report(erased.error());
    }
    stillpoint::release_block(*session->heap, block);
    return SP_OK;
}

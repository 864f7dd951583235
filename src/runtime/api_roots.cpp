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

namespace {

Result<void*> root_without_pool(std::string_view handle, size_t size_bytes, size_t alignment_bytes)
{
    const auto root = stillpoint::find_volatile_root(handle);
    if (root.address != nullptr) {
        if (root.size_bytes != size_bytes) {
            return fail(SP_E_HANDLE_SIZE, 0, "\"{}\" has {} bytes, not {}", handle, root.size_bytes, size_bytes);
        }
        return root.address;
    }
    void* const block = sp_aligned_alloc(alignment_bytes, size_bytes == 0 ? 1 : size_bytes);
    if (block != nullptr) {
        std::memset(block, 0, size_bytes);
    }
    if (block == nullptr || !stillpoint::put_volatile_root(handle, {block, size_bytes})) {
        std::free(block);
        return fail(SP_E_NO_MEMORY, ENOMEM, "no memory for \"{}\"", handle);
    }
    return block;
}

/// The directory comes from the pool file: an entry is believed only if it names a live block, as `stillpoint check` wants it.
bool is_live_block(const Session& session, const stillpoint::DirectoryEntry& entry) noexcept
{
    const auto base = reinterpret_cast<std::uintptr_t>(session.engine->image_base());
    if (entry.address < base || entry.address - base >= session.engine->image_bytes()) {
        return false;
    }
    const auto* const address = reinterpret_cast<const std::byte*>(entry.address);
    const Heap::Block block = session.heap->find_block(address);
    return block.begin == address && entry.size_bytes <= block.usable_bytes;
}

tl::unexpected<Failure> no_live_block(std::string_view handle)
{
    return fail(SP_E_POOL_CORRUPT, 0, "the durable object \"{}\" is no live block of the pool: run `stillpoint check`", handle);
}

using Make = Result<void*> (*)(void* context, Session& session);

Result<void*> root_in_pool(Session& session, std::string_view handle, size_t size_bytes, Make make, void* context)
{
    const FaseGuard fase;
    const std::lock_guard guard(session.directory_lock);
    if (const auto entry = session.directory->find(handle)) {
        if (!is_live_block(session, *entry)) {
            return no_live_block(handle);
        }
        if (entry->size_bytes != size_bytes) {
            return fail(SP_E_HANDLE_SIZE, 0,
                        "the durable object \"{}\" has {} bytes, not {}: was its type changed?", handle,
                        entry->size_bytes, size_bytes);
        }
        return reinterpret_cast<void*>(entry->address);
    }
    auto block = make(context, session);
    if (!block) {
        return block;
    }
    if (auto inserted = stillpoint::insert_name(session, handle, *block, size_bytes);
        !inserted) {
        session.heap->deallocate(*block);
        return stillpoint::pass_on(inserted.error());
    }
    return block;
}

void* find_or_make(const char* handle, size_t size_bytes, size_t alignment_bytes, Make make, void* context)
{
    Session* const session = used_session();
    stillpoint::warn_if_not_durable(session);
    Result<void*> found;
    if (auto valid = stillpoint::check_handle(handle); !valid) {
        found = stillpoint::pass_on(valid.error());
    } else if (session == nullptr) {
        found = root_without_pool(handle, size_bytes, alignment_bytes);
    } else {
        found = root_in_pool(*session, handle, size_bytes, make, context);
    }
    if (!found) {
        stillpoint::report_as_errno(found.error());
        return nullptr;
    }
    return *found;
}

}  // namespace

namespace stillpoint {

Result<void> check_handle(const char* handle)
{
    if (handle == nullptr || !Directory::valid_handle(handle)) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "the name of a durable object has 1 to {} bytes", Directory::handle_bytes_max);
    }
    return {};
}

void* named_object_of(const char* handle, std::size_t size_bytes, Result<void*> (*make)(void* context, Session& session), void* context)
{
    return find_or_make(handle, size_bytes, alignof(std::max_align_t), make, context);
}

void* named_object(const char* handle, std::size_t size_bytes, std::size_t alignment_bytes)
{
    struct Request {
        std::size_t alignment;
        std::size_t size;
    } request{alignment_bytes, size_bytes == 0 ? 1 : size_bytes};
    return find_or_make(handle, size_bytes, alignment_bytes, [](void* context, Session& session) -> Result<void*> {
        const auto& wanted = *static_cast<const Request*>(context);
        void* const block = session.heap->allocate_aligned(wanted.alignment, wanted.size);
        if (block == nullptr) {
            return pass_on(Heap::last_failure());
        }
        session.heap->clear_block(block, wanted.size);
        return block;
    }, &request);
}

}  // namespace stillpoint

STILLPOINT_API void* sp_root(const char* handle, size_t size_bytes)
{
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
    if (session != nullptr && !is_live_block(*session, *entry)) {
        return no_live_block(handle);
    }
    return *entry;
}

}  // namespace

STILLPOINT_API void* sp_root_find(const char* handle, size_t* size_bytes)
{
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
        *size_bytes = entry->size_bytes;
        stillpoint::note_store(size_bytes, sizeof *size_bytes);
    }
    return reinterpret_cast<void*>(entry->address);
}

STILLPOINT_API int sp_root_delete(const char* handle)
{
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

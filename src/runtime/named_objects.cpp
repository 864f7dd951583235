#include "runtime/named_objects.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "core/store_marks.hpp"
#include "runtime/dying_memory.hpp"
#include "runtime/fase.hpp"
#include "runtime/volatile_memory.hpp"
#include "runtime/volatile_roots.hpp"

namespace stillpoint {

namespace {

/// The first time that a block is freed: the names that the pool has. Under the directory's lock.
void list_names(Session& session) noexcept
{
    NamedBlocks& named = session.named;
    if (!named.is_complete() && named.reserve(session.directory->capacity())) {
        session.directory->for_each([&](const DirectoryEntry& entry) { named.add(entry.address); });
        named.complete();
    }
}

}  // namespace

Result<void> insert_name(Session& session, std::string_view handle, const void* block, std::size_t size_bytes)
{
    auto inserted = session.directory->insert(handle, reinterpret_cast<std::uintptr_t>(block), size_bytes);
    if (inserted) {
        session.named.add(reinterpret_cast<std::uintptr_t>(block));
    }
    return inserted;
}

Result<void> move_name(Session& session, const DirectoryEntry& old, const void* block, std::size_t size_bytes)
{
    const std::uintptr_t from = old.address;
    auto moved = session.directory->replace(old.handle, reinterpret_cast<std::uintptr_t>(block), size_bytes);
    if (moved) {
        session.named.remove(from);
        session.named.add(reinterpret_cast<std::uintptr_t>(block));
    }
    return moved;
}

Result<void> erase_name(Session& session, const DirectoryEntry& entry)
{
    const std::uintptr_t address = entry.address;
    auto erased = session.directory->erase(entry.handle);
    if (erased) {
        session.named.remove(address);
    }
    return erased;
}

void free_with_names(Session& session, void* block) noexcept
{
    const std::lock_guard guard(session.directory_lock);
    const StoreGroup group;
    list_names(session);
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    while (may_have_name(session, block)) {
        const auto entry = session.directory->find_by_address(address);
        if (!entry || !erase_name(session, *entry)) {
            break;
        }
    }
    release_block(*session.heap, block);
}

void* reallocate_named(Session& session, void* block, std::size_t size_bytes, Heap::AboutToDie about_to_die) noexcept
{
    const std::lock_guard guard(session.directory_lock);
    const StoreGroup group;
    list_names(session);
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    const auto entry = may_have_name(session, block) ? session.directory->find_by_address(address) : std::nullopt;
    void* const moved = session.heap->reallocate(block, size_bytes, about_to_die);
    if (moved != nullptr && entry) {
        // The name exists, and the lock is held.
        [[maybe_unused]] const auto renamed = move_name(session, *entry, moved, size_bytes);
    }
    return moved;
}

bool is_live_block(const Session& session, const DirectoryEntry& entry) noexcept
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
    return fail(SP_E_POOL_CORRUPT, 0, "the durable object \"{}\" does not name an allocated block: run `stillpoint check`", handle);
}

namespace {

Result<void*> root_without_pool(std::string_view handle, size_t size_bytes, size_t alignment_bytes)
{
    const auto root = find_volatile_root(handle);
    if (root.address != nullptr) {
        if (root.size_bytes != size_bytes) {
            return fail(SP_E_HANDLE_SIZE, 0, "\"{}\" has {} bytes, not {}", handle, root.size_bytes, size_bytes);
        }
        return root.address;
    }
    void* const block = allocate_volatile(alignment_bytes, size_bytes == 0 ? 1 : size_bytes);
    if (block != nullptr) {
        std::memset(block, 0, size_bytes);
    }
    if (block == nullptr || !put_volatile_root(handle, {block, size_bytes})) {
        std::free(block);
        return fail(SP_E_NO_MEMORY, ENOMEM, "no memory for \"{}\"", handle);
    }
    return block;
}

using Make = Result<void*> (*)(void* context, Session& session);

Result<void*> root_in_pool(Session& session, std::string_view handle, size_t size_bytes, Make make, void* context)
{
    const FaseGuard fase;
    const std::lock_guard guard(session.directory_lock);
    const StoreGroup group;
    if (const auto entry = session.directory->find(handle)) {
        if (!is_live_block(session, *entry)) {
            return no_live_block(handle);
        }
        if (entry->size_bytes != size_bytes) {
            return fail(SP_E_HANDLE_SIZE, 0, "the durable object \"{}\" has {} bytes, not {}: was its type changed?", handle,
                        entry->size_bytes, size_bytes);
        }
        return reinterpret_cast<void*>(entry->address);
    }
    auto block = make(context, session);
    if (!block) {
        return block;
    }
    if (auto inserted = insert_name(session, handle, *block, size_bytes); !inserted) {
        session.heap->deallocate(*block);
        return pass_on(inserted.error());
    }
    return block;
}

void* find_or_make(const char* handle, size_t size_bytes, size_t alignment_bytes, Make make, void* context)
{
    Session* const session = used_session();
    warn_if_not_durable(session);
    Result<void*> found;
    if (auto valid = check_handle(handle); !valid) {
        found = pass_on(valid.error());
    } else if (session == nullptr) {
        found = root_without_pool(handle, size_bytes, alignment_bytes);
    } else {
        found = root_in_pool(*session, handle, size_bytes, make, context);
    }
    if (!found) {
        report_as_errno(found.error());
        return nullptr;
    }
    return *found;
}

}  // namespace

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
    return find_or_make(
        handle, size_bytes, alignment_bytes,
        [](void* context, Session& session) -> Result<void*> {
            const auto& wanted = *static_cast<const Request*>(context);
            void* const block = session.heap->allocate_aligned(wanted.alignment, wanted.size);
            if (block == nullptr) {
                return pass_on(Heap::last_failure());
            }
            session.heap->clear_block(block, wanted.size);
            return block;
        },
        &request);
}

}  // namespace stillpoint

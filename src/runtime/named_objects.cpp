#include "runtime/named_objects.hpp"

#include <mutex>

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

void forget_names_of(Session& session, const void* block) noexcept
{
    const std::lock_guard guard(session.directory_lock);
    list_names(session);
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    while (may_have_name(session, block)) {
        const auto entry = session.directory->find_by_address(address);
        if (!entry || !erase_name(session, *entry)) {
            return;
        }
    }
}

void* reallocate_named(Session& session, void* block, std::size_t size_bytes, Heap::AboutToDie about_to_die) noexcept
{
    const std::lock_guard guard(session.directory_lock);
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

}  // namespace stillpoint

#include "runtime/ignored_locks.hpp"

#include <mutex>

#include "runtime/sync_uses.hpp"

namespace stillpoint {

bool IgnoredLocks::contains(const void* lock) const noexcept
{
    const auto wanted = reinterpret_cast<std::uintptr_t>(lock);
    for (std::size_t i = 0, slot = first_slot(wanted); i < slots; ++i, slot = (slot + 1) % slots) {
        const auto found = locks_[slot].load(std::memory_order_relaxed);
        if (found == wanted) {
            return true;
        }
        if (found == 0) {
            return false;
        }
    }
    return false;
}

bool IgnoredLocks::add(const void* lock) noexcept
{
    const std::scoped_lock writer{writers_};
    if (contains(lock)) {
        return true;
    }
    if (used_ == capacity) {
        return false;
    }
    const auto wanted = reinterpret_cast<std::uintptr_t>(lock);
    std::size_t slot = first_slot(wanted);
    while (locks_[slot].load(std::memory_order_relaxed) > removed) {
        slot = (slot + 1) % slots;
    }
    if (stillpoint_is_persistent(lock)) {
        sync_uses::any.store(true, std::memory_order_relaxed);
        sync_uses::regions.add(wanted);
    }
    locks_[slot].store(wanted, std::memory_order_relaxed);
    ++used_;
    return true;
}

void IgnoredLocks::erase(std::size_t slot) noexcept
{
    const std::uintptr_t lock = locks_[slot].load(std::memory_order_relaxed);
    if (stillpoint_is_persistent(reinterpret_cast<const void*>(lock))) {
        sync_uses::regions.remove(lock);
    }
    --used_;
    locks_[slot].store(removed, std::memory_order_relaxed);
    // The end of a probe run needs no marks: nothing lies after them. Keeps misses short.
    while (locks_[(slot + 1) % slots].load(std::memory_order_relaxed) == 0 && locks_[slot].load(std::memory_order_relaxed) == removed) {
        locks_[slot].store(0, std::memory_order_relaxed);
        slot = (slot + slots - 1) % slots;
    }
}

void IgnoredLocks::remove(const void* lock) noexcept
{
    const std::scoped_lock writer{writers_};
    if (!contains(lock)) {
        return;
    }
    const auto wanted = reinterpret_cast<std::uintptr_t>(lock);
    std::size_t slot = first_slot(wanted);
    while (locks_[slot].load(std::memory_order_relaxed) != wanted) {
        slot = (slot + 1) % slots;
    }
    erase(slot);
}

void IgnoredLocks::remove_in(const void* address, std::size_t size) noexcept
{
    const auto first = reinterpret_cast<std::uintptr_t>(address);
    if (!sync_uses::regions.may_hold_one_in(first, size)) {
        return;
    }
    const std::scoped_lock writer{writers_};
    for (std::size_t slot = 0; slot < slots; ++slot) {
        const std::uintptr_t lock = locks_[slot].load(std::memory_order_relaxed);
        if (lock > removed && lock - first < size) {
            erase(slot);
        }
    }
}

}  // namespace stillpoint

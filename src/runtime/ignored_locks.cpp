#include "runtime/ignored_locks.hpp"

#include <mutex>

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
    locks_[slot].store(wanted, std::memory_order_relaxed);
    ++used_;
    return true;
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
    --used_;
    locks_[slot].store(removed, std::memory_order_relaxed);
    // The end of a probe run needs no marks: nothing lies behind them. Keeps misses short.
    while (locks_[(slot + 1) % slots].load(std::memory_order_relaxed) == 0 &&
           locks_[slot].load(std::memory_order_relaxed) == removed) {
        locks_[slot].store(0, std::memory_order_relaxed);
        slot = (slot + slots - 1) % slots;
    }
}

}  // namespace stillpoint

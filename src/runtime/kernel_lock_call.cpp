#include "runtime/kernel_lock_call.hpp"

#include <cstdint>

#include "core/sync.hpp"
#include "runtime/session_engine.hpp"

namespace stillpoint::kernel_locks {

constinit std::atomic<bool> are_guarded{false};

namespace {

/// A store that changes nothing, as others store: the tracker opens a page that is protected. Announced first, it stays open.
void touch(std::uintptr_t address) noexcept
{
    const sync::AtomicRef<std::uint32_t> word(*reinterpret_cast<std::uint32_t*>(address));
    std::uint32_t value = word.load(std::memory_order_relaxed);
    while (!word.compare_exchange_weak(value, value, std::memory_order_relaxed)) {
    }
}

void touch_pages(const void* object, std::size_t size) noexcept
{
    const auto begin = reinterpret_cast<std::uintptr_t>(object) & ~std::uintptr_t{3};
    touch(begin);
    touch((begin + size - 1) & ~std::uintptr_t{3});
}

}  // namespace

void was_left(void*, std::size_t) noexcept {}

kernel_writes::Slot begin(const void* object, std::size_t size, const void* frame) noexcept
{
    const kernel_writes::Slot slot = kernel_writes::announce(object, size, frame);
    touch_pages(object, size);
    return slot;
}

kernel_writes::Slot begin_after_thread(const void* mutex) noexcept
{
    if (!are_guarded.load(std::memory_order_relaxed) || !stillpoint_is_persistent(mutex)) {
        return kernel_writes::no_slot;
    }
    // Not by a touch: signals may be blocked here.
    const kernel_writes::Slot slot = kernel_writes::announce(mutex, sizeof(pthread_mutex_t), &mutex);
    session_prepare_kernel_write(const_cast<void*>(mutex), sizeof(pthread_mutex_t));
    if (slot == kernel_writes::no_slot) {
        kernel_writes::withdraw(slot, &mutex);
    } else {
        kernel_writes::outlive_thread(slot);
    }
    return slot;
}

void release(kernel_writes::Slot slot) noexcept
{
    if (slot != kernel_writes::no_slot) {
        kernel_writes::withdraw_outliving(slot);
    }
}

}  // namespace stillpoint::kernel_locks

#pragma once
// The set of locks that sp_lock_ignore took out of the accounting: at most 1024, looked up
// without a lock by every acquire and release once there is one.

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/sync.hpp"
#include "os/futex.hpp"

namespace stillpoint {

/// Entries are addresses and nothing behind them, so every access is relaxed: the program itself must see to it that
/// sp_lock_ignore happens before another thread uses the lock.
class IgnoredLocks {
public:
    static constexpr std::size_t capacity = 1024;

    /// False: the set is full. Adding a member again is fine.
    [[nodiscard]] bool add(const void* lock) noexcept;
    void remove(const void* lock) noexcept;
    /// Durable memory at [address, + size) holds no locks any more.
    void remove_in(const void* address, std::size_t size) noexcept;
    [[nodiscard]] bool contains(const void* lock) const noexcept;
    void reset_after_fork() noexcept { writers_.reset_after_fork(); }

private:
    static constexpr std::size_t slots = 4 * capacity;
    static constexpr std::uintptr_t removed = 1;  ///< a probe goes on past it
    [[nodiscard]] static std::size_t first_slot(std::uintptr_t lock) noexcept
    {
        return (lock * 0x9e3779b97f4a7c15u) >> 52;  // 12 bits: 4096 slots
    }

    void erase(std::size_t slot) noexcept;

    std::array<sync::Atomic<std::uintptr_t>, slots> locks_{};
    os::FutexLock writers_;
    std::size_t used_ = 0;
};

}  // namespace stillpoint

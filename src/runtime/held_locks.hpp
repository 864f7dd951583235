#pragma once
// Which locks a thread holds: for checks of how a program locks. Listed from begin() on only, since every acquire and
// release then goes the way of a gate that is not clear; before it, nothing here costs anything.

#include <array>
#include <atomic>
#include <cstdint>

#include "runtime/thread_registry.hpp"

namespace stillpoint::held_locks {

inline constexpr std::uint32_t listed_max = 16;

struct Locks {
    std::array<const void*, listed_max> lock;
    std::uint32_t count;
    bool is_complete;  ///< false: it may hold others, acquired before begin() or beyond listed_max
};

/// Looked at where the gate is not clear only.
[[gnu::visibility("hidden")]] extern constinit std::atomic<bool> is_begun;
[[nodiscard]] inline bool are_listed() noexcept { return is_begun.load(std::memory_order_relaxed); }

/// Any thread, any number of times.
void begin() noexcept;
/// Told of each listed lock: when it is about to be acquired, and when it is about to be, or was, released. Neither may call malloc.
struct Observer {
    void (*acquiring)(const void* lock) noexcept;
    void (*releasing)(const void* lock) noexcept;
};
/// Begins, with an observer that lives forever; nullptr: without one.
void begin_observed(const Observer* observer) noexcept;
/// The locks of the calling thread.
[[nodiscard]] Locks of_this_thread() noexcept;

/// How many locks of an engine's own the calling thread holds, which the accounting does not see. nullptr: there are none.
using OwnLocks = std::uint32_t (*)() noexcept;
void set_own_locks(OwnLocks count) noexcept;

/// Whether the calling thread, whose record it is and which is inside `depth` sections, holds no lock: an engine may keep a thread in a
/// section without a lock between its locks. Listed or not.
[[nodiscard]] bool holds_none(const ThreadRecord& record, std::uint32_t depth) noexcept;

/// From the accounting only: `lock` (nullptr: a section) is about to be acquired by the thread that `record` belongs to, which is inside
/// `depth` others; and it was released, or not acquired.
void add(const ThreadRecord& record, const void* lock, std::uint32_t depth) noexcept;
void remove(const void* lock) noexcept;

}  // namespace stillpoint::held_locks

#pragma once
// Stands in for src/os/thread_calls.hpp. A thread's name is its number in the scenario + 100.

#include <cstddef>
#include <cstdint>
#include <pthread.h>

#include "core/sync.hpp"

namespace stillpoint::os {

inline constexpr int first_thread_id = 100;

[[nodiscard]] inline int thread_id() noexcept { return first_thread_id + schedules::current_thread(); }
[[nodiscard]] inline bool thread_is_gone(int thread) noexcept { return schedules::has_ended(thread - first_thread_id); }

inline void yield_cpu(sync::Site site = sync::Site::current()) noexcept
{
    sync::access<std::uint64_t>(schedules::Kind::yield, nullptr, std::memory_order_relaxed, 0, site);
}

/// A loop that looks again and again, as one operation.
template <class T>
void yield_until_zero(const sync::Atomic<T>& word, sync::Site site = sync::Site::current()) noexcept
{
    sync::access<T>(schedules::Kind::await, &word, std::memory_order_relaxed, T{}, site);
}

inline constinit bool registered_for_membarrier = false;
[[nodiscard]] inline bool register_for_membarrier() noexcept
{
    registered_for_membarrier = true;
    return true;
}

inline void membarrier(sync::Site site = sync::Site::current()) noexcept
{
    if (registered_for_membarrier) {  // Otherwise the kernel refuses.
        sync::access<std::uint64_t>(schedules::Kind::membarrier, nullptr, std::memory_order_seq_cst, 0, site);
    }
}

class SignalsBlocked {
public:
    SignalsBlocked() noexcept { schedules::block_signals(1); }
    ~SignalsBlocked() { schedules::block_signals(-1); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;
};

using ExitKey = unsigned;
[[nodiscard]] inline bool make_exit_key(ExitKey&, void (*destructor)(void*)) noexcept
{
    schedules::set_exit_destructor(destructor);
    return true;
}
inline void set_exit_value(ExitKey, void* value) noexcept { schedules::set_exit_value(value); }

/// Two records a chunk, so that scenarios use up one.
inline constexpr std::size_t zeroed_memory_unit = 3 * 128;

[[nodiscard]] inline void* zeroed_memory(std::size_t bytes) noexcept { return schedules::schedule_memory(bytes); }

}  // namespace stillpoint::os

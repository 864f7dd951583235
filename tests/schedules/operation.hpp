#pragma once
// The requests of the code under exploration to the explorer: one Operation for each access to memory that threads share,
// each fence, and each call that waits for, or wakes, another thread.

#include <atomic>
#include <cstdint>
#include <source_location>

namespace stillpoint::schedules {

enum class Kind : std::uint8_t {
    load,
    store,
    exchange,
    add,
    bit_or,
    bit_and,
    compare_exchange,
    fence,
    compiler_fence,
    membarrier,
    futex_wait,
    futex_wake,
    plain_read,   ///< not atomic: a race is a violation
    plain_write,
    await,        ///< goes on once a word has (or has not) a value: a busy-waiting loop of the program
    clock,
    yield,
    label,        ///< no access: a point where the thread's past does not matter any more
};

struct Operation {
    Kind kind = Kind::load;
    std::memory_order order = std::memory_order_relaxed;
    std::memory_order order_of_failure = std::memory_order_relaxed;
    void* address = nullptr;
    std::uint8_t bytes = 0;
    bool negated = false;          ///< await: until the word differs from `operand`
    std::uint64_t operand = 0;     ///< stored, added, expected by a wait, how many to wake
    std::uint64_t expected = 0;    ///< of compare_exchange
    std::uint64_t deadline_ns = UINT64_MAX;
    std::source_location site;
    std::uint64_t result = 0;
    bool succeeded = false;
};

/// Carries the operation out when the scheduler says so; returns its result.
std::uint64_t perform(Operation& operation) noexcept;

/// The number of the calling thread in its scenario.
[[nodiscard]] int current_thread() noexcept;

[[nodiscard]] bool has_ended(int thread) noexcept;

/// False in the model of CPUs weaker than x86.
[[nodiscard]] bool stores_arrive_in_order() noexcept;
/// How many operations this schedule has come to.
[[nodiscard]] unsigned operations_so_far() noexcept;

/// A property does not hold: the schedule is a counterexample. Does not return inside a thread.
void violation(const char* what) noexcept;
inline void require(bool holds, const char* what) noexcept
{
    if (!holds) {
        violation(what);
    }
}

/// Memory that begins as zeroes in every schedule, at the same address. nullptr: used up.
[[nodiscard]] void* schedule_memory(std::size_t bytes) noexcept;

/// No signal comes to the calling thread while the sum of `more` is not 0.
void block_signals(int more) noexcept;

/// The end of a thread: `destructor(value)` runs for the value that the thread has set.
void set_exit_destructor(void (*destructor)(void*)) noexcept;
void set_exit_value(void* value) noexcept;

}  // namespace stillpoint::schedules

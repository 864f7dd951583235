#pragma once
// `stillpoint lint` inside the program: what code compiled with `stillpoint cc --lint` stores is held against the two
// rules that lock-based persistence stands on. Durable memory is written inside a FASE only, and points to
// durable memory only (docs/guide/guarantees.md).
//
// Threads: any. Nothing here calls malloc, and the program's own locks are not taken. Cost while no report is wanted:
// one load and a branch.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/lint_rules.hpp"

namespace stillpoint::lint {

enum class State : std::uint8_t { undecided, off, on };
[[gnu::visibility("hidden")]] extern constinit std::atomic<State> state;

/// Looks for a report at the first call of a hook.
[[gnu::cold]] bool decide() noexcept;

/// True if findings are wanted: this process is the one that `stillpoint lint` started.
[[gnu::always_inline]] inline bool is_on() noexcept
{
    const State now = state.load(std::memory_order_acquire);
    return now == State::on || (now == State::undecided && decide());
}

/// The engine whose rules are checked instead of those of FASEs; nullptr: none. Only while is_on().
[[nodiscard]] const Observer* observer() noexcept;

/// Reporter::add.
Place* add(const Finding& finding) noexcept;

/// Whether `address` belongs to an SP_PERSISTENT variable. Only while is_on().
[[nodiscard]] bool is_in_durable_global(const void* address) noexcept;

/// The bytes were written by the code that `caller` returns to. Reports the store where the thread is in no FASE, and each
/// whole word of it that looks like the address of volatile memory.
void note_write(const void* address, std::size_t size_bytes, const void* caller) noexcept;

/// Notes that the store was of a pointer: what note_write() just held for possible is now known.
void note_pointer(const void* location, const void* value, const void* caller) noexcept;

}  // namespace stillpoint::lint

#pragma once
// The checks of every scenario: a copy holds each finished FASE and no open one; at the end nothing is left behind.

#include <cstdint>

#include "runtime/fase_gate.hpp"
#include "runtime/quiescence.hpp"
#include "tests/schedules/scenario.hpp"

namespace stillpoint::schedules {

inline constexpr std::uint64_t for_ever_ns = UINT64_MAX;
inline constexpr std::uint64_t short_attempt_ns = 1000;

/// Durable memory of a scenario: `words[w]` counts the FASEs that were finished on it, and so does `finished[w]`,
/// which the explorer alone sees.
struct Durable {
    static constexpr int words_max = 3;
    DurableWord words[words_max];
    std::uint64_t finished[words_max] = {};
    std::uint64_t registered = 0;  ///< threads that have a record at the end
    bool open[8] = {};  ///< threads whose FASE has written and is not over
    int stops = 0;    ///< that were reached
    int blocker_thread_id = 0;  ///< of the last attempt
    const void* blocker_lock = nullptr;
};
extern Durable durable;

/// Stores of the program in a FASE; the caller is inside.
void write_word(int word) noexcept;
/// Before what ends the FASE.
void last_write_is_done() noexcept;

/// One stop that copies durable memory and checks the copy. True: it was reached.
bool take_checkpoint(std::uint64_t attempt_ns) noexcept;
/// Takes a checkpoint with no end to the attempt: it must be reached.
void must_take_checkpoint() noexcept;

/// begin: the accounting is on, with membarrier or with fences.
void begin_with_membarrier() noexcept;
void begin_with_fences() noexcept;
/// Begins after other stops: the count of departures is not zero.
void begin_after_departures() noexcept;
/// finish: the gate is open, no thread is inside, no record is in use, each FASE is in durable memory.
void finish_clean() noexcept;

}  // namespace stillpoint::schedules

#pragma once
// The common part of the files of scenarios.

#include "interpose/real.hpp"
#include "runtime/fase_gate.hpp"
#include "tests/schedules/checks.hpp"

namespace stillpoint::schedules {

/// The state that the threads of a scenario share besides durable memory: begins as zeroes.
struct Shared {
    pthread_mutex_t mutex;
    pthread_mutex_t other;
    pthread_cond_t condition;
    pthread_spinlock_t spinlock;
    sync::Atomic<std::uint32_t> flag;
    sync::Atomic<std::uint32_t> second_flag;
    int arrived;
    alignas(8) std::uint8_t card;       ///< of the line of datum
    alignas(8) std::uint8_t page_card;  ///< of its page
    sync::Atomic<std::uint64_t> datum;  ///< its line and page have the cards
    std::uint64_t datum_finished;       ///< what a FASE that is over has stored there; the explorer alone sees it
    std::uint64_t datum_copied;         ///< what the checkpoint has
    const ThreadRecord* record;
    sync::Atomic<std::uint32_t> is_marked;     ///< of the page of `datum`, by a tracker: written since it was last looked at
    sync::Atomic<std::uint32_t> is_protected;
    alignas(8) sync::Atomic<std::uint64_t> semaphore;  ///< its waiters; or reused_mark: the memory is something else
};
extern Shared shared;

/// A FASE without a lock, and one under a mutex; `outermost`: the FASE ends with it.
void write_in_section(int word) noexcept;
void write_under(pthread_mutex_t& mutex, int word, bool outermost = true) noexcept;

// scenarios_of_threads.cpp: births and ends.
void newborns_or_checkpoint(int thread);
void leaked_inside(int thread);
void leaked_record(int thread);
void begin_with_an_exit_hook() noexcept;
void finish_with_one_hook_run() noexcept;
void left_behind_or_checkpoint(int thread);
void finish_with_a_fase_open() noexcept;
void robust_owner_or_checkpoint(int thread);

// scenarios_of_locks.cpp: mutexes, one inside another, and spinlocks.
void mutex_or_checkpoint(int thread);
void try_lock_or_checkpoint(int thread);
void spinlock_or_checkpoint(int thread);
void nested_by_count(int);
void nested_mutexes_or_checkpoint(int thread);

// scenarios_of_pauses.cpp: FASEs that pause.
void paused_or_checkpoint(int thread);
void sleeper_in_a_pause_or_checkpoint(int thread);

// scenarios_of_marks.cpp: the card table.
void marker_or_collector(int thread);
void count_of_marks(int);

// scenarios_of_uses.cpp: synchronisation objects in durable memory.
void begin_with_uses() noexcept;
void user_or_capture(int thread);
void two_users_or_capture(int thread);
void count_of_uses(int);
void finish_without_uses() noexcept;

// scenarios_of_devices.cpp: system calls that store into durable memory.
void begin_with_devices() noexcept;
void device_or_checkpoint(int thread);
void device_or_protecting_checkpoint(int thread);
void count_of_device_calls(int);
void finish_without_calls() noexcept;

}  // namespace stillpoint::schedules

#include <cstdio>
#include <cstring>
#include <mutex>

#include "interpose/real.hpp"
#include "os/futex.hpp"
#include "os/thread_calls.hpp"
#include "runtime/fase.hpp"
#include "tests/schedules/checks.hpp"
#include "tests/schedules/libc_model.hpp"
#include "tests/schedules/scenario_parts.hpp"

namespace stillpoint::schedules {

constinit Shared shared{};

void write_in_section(int word) noexcept
{
    fase_enter(nullptr);
    write_word(word);
    last_write_is_done();
    fase_leave(nullptr);
    forget_past();
}

/// `outermost`: the FASE ends with it.
void write_under(pthread_mutex_t& mutex, int word, bool outermost) noexcept
{
    pthread_mutex_lock(&mutex);
    require(mutex.__data.__owner == os::thread_id(), "a mutex is held in another thread's name");
    write_word(word);
    if (outermost) {
        last_write_is_done();
    }
    pthread_mutex_unlock(&mutex);
}

namespace {

// ---- Sections ------------------------------------------------------------------------------------------------

void writer_twice_or_checkpoint(int thread)
{
    if (thread == 0) {
        write_in_section(0);
        write_in_section(0);
    } else {
        must_take_checkpoint();
    }
}

void writer_or_checkpoint(int thread)
{
    if (thread == 0) {
        write_in_section(0);
    } else {
        must_take_checkpoint();
    }
}

/// As above, with a thread that looks at its record too.
void newborn_or_checkpoint(int thread)
{
    if (thread == 0) {
        write_in_section(0);
        require(fase::own_record != nullptr, "a thread that uses locks has no record");
        require(fase::own_record->state.load() == ThreadRecord::live, "a living thread's record is not marked");
        require(fase::own_record->thread_id.load() == os::thread_id(), "a record has no name");
    } else {
        must_take_checkpoint();
    }
}

/// How many accesses a lock and an unlock make while the gate is clear: the fast path, by count.
void count_of_fast_path(int)
{
    const unsigned before = operations_so_far();
    fase_enter(nullptr);
    fase_leave(nullptr);
    require(operations_so_far() - before == 11, "the fast path of a FASE has another number of accesses");
}

void writers_or_checkpoint(int thread)
{
    if (thread < 2) {
        write_in_section(thread);
    } else {
        must_take_checkpoint();
    }
}

void writer_twice_or_two_checkpoints(int thread)
{
    if (thread == 0) {
        write_in_section(0);
        write_in_section(0);
    } else {
        must_take_checkpoint();
        must_take_checkpoint();
    }
}

/// Inner locks, released in the order of their acquisition (hand over hand).
void nested_or_checkpoint(int thread)
{
    if (thread == 1) {
        must_take_checkpoint();
        return;
    }
    int outer = 0;
    int inner = 0;
    fase_enter(&outer);
    write_word(0);
    fase_enter(&inner);
    write_word(1);
    fase_leave(&outer);
    write_word(0);
    require(inside_fase(), "a FASE ended with its outermost lock while an inner one was held");
    last_write_is_done();
    fase_leave(&inner);
    require(!inside_fase(), "a FASE went on after its last lock");
}

// ---- Condition waits -----------------------------------------------------------------------------------------

void consumer_producer_or_checkpoint(int thread)
{
    if (thread == 2) {
        must_take_checkpoint();
    } else if (thread == 1) {
        pthread_mutex_lock(&shared.mutex);
        write_word(0);
        shared.arrived = 1;
        signal_condition(shared.condition);
        last_write_is_done();
        pthread_mutex_unlock(&shared.mutex);
    } else {
        pthread_mutex_lock(&shared.mutex);
        while (shared.arrived == 0) {
            pthread_cond_wait(&shared.condition, &shared.mutex);
            require(inside_fase(), "a condition wait returned outside the FASE");
        }
        write_under(shared.other, 0, false);
        last_write_is_done();
        pthread_mutex_unlock(&shared.mutex);
    }
}

/// A waiter that no thread wakes before the checkpoint is over.
void waiter_or_checkpoint_then_signal(int thread)
{
    if (thread == 0) {
        pthread_mutex_lock(&shared.mutex);
        write_word(0);
        last_write_is_done();
        while (shared.arrived == 0) {
            pthread_cond_wait(&shared.condition, &shared.mutex);
        }
        write_word(0);
        last_write_is_done();
        pthread_mutex_unlock(&shared.mutex);
        return;
    }
    must_take_checkpoint();
    pthread_mutex_lock(&shared.mutex);
    shared.arrived = 1;
    signal_condition(shared.condition);
    pthread_mutex_unlock(&shared.mutex);
    must_take_checkpoint();
}

/// A wait that is over at once, and an inner lock after it: it must pass a shut gate.
void resumed_or_checkpoint(int thread)
{
    if (thread == 1) {
        must_take_checkpoint();
        return;
    }
    fase_enter(&shared.mutex);
    require(fase::suspend_for_wait(&shared.mutex), "a wait with the only lock does not end the FASE");
    while (!fase::resume_after_wait(&shared.mutex)) {
        fase::wait_while_shut();
    }
    write_word(0);
    fase_enter(&shared.other);
    write_word(0);
    fase_leave(&shared.other);
    last_write_is_done();
    fase_leave(&shared.mutex);
}

/// A wait with the second of two mutexes, the first of which is released already: it ends the FASE.
void hand_over_hand_waiter_or_checkpoint(int thread)
{
    if (thread == 0) {
        pthread_mutex_lock(&shared.other);
        pthread_mutex_lock(&shared.mutex);
        pthread_mutex_unlock(&shared.other);
        write_word(0);
        last_write_is_done();
        while (shared.arrived == 0) {
            pthread_cond_wait(&shared.condition, &shared.mutex);
        }
        pthread_mutex_unlock(&shared.mutex);
        return;
    }
    must_take_checkpoint();
    pthread_mutex_lock(&shared.mutex);
    shared.arrived = 1;
    signal_condition(shared.condition);
    pthread_mutex_unlock(&shared.mutex);
}

// ---- Withdrawal ----------------------------------------------------------------------------------------------

void writers_or_short_attempts(int thread)
{
    if (thread < 2) {
        write_in_section(thread);
    } else if (!take_checkpoint(short_attempt_ns)) {
        must_take_checkpoint();
    }
}

/// A thread inside busy-waits for one that the stop holds: only withdrawal helps, and a pause before the next attempt,
/// or the one that is held might find the gate shut again each time.
void spinner_or_short_attempts(int thread)
{
    if (thread == 0) {
        pthread_mutex_lock(&shared.mutex);
        shared.second_flag.store(1, std::memory_order_release);
        write_word(0);
        await<std::uint32_t>(shared.flag, 1);
        last_write_is_done();
        pthread_mutex_unlock(&shared.mutex);
    } else if (thread == 1) {
        fase_enter(nullptr);
        shared.arrived = 1;
        shared.flag.store(1, std::memory_order_release);
        fase_leave(nullptr);
    } else {
        await<std::uint32_t>(shared.second_flag, 1);
        for (int attempt = 0; !take_checkpoint(short_attempt_ns); ++attempt) {
            require(durable.blocker_thread_id != os::first_thread_id || durable.blocker_lock == &shared.mutex || shared.arrived != 0,
                    "a withdrawn attempt names another lock than the blocker's");
            require(attempt < 4, "attempts are withdrawn forever");
            if (attempt == 1) {
                await<std::uint32_t>(shared.flag, 1);
            }
        }
    }
}

// ---- Outside -------------------------------------------------------------------------------------------------

/// A thread that has been inside blocks outside until the checkpoint is over: it must not be waited for.
void blocked_outside_or_checkpoint(int thread)
{
    if (thread == 0) {
        write_in_section(0);
        await<std::uint32_t>(shared.flag, 1);
        write_in_section(0);
    } else {
        must_take_checkpoint();
        shared.flag.store(1, std::memory_order_release);
    }
}

void begin_with_an_ignored_lock() noexcept
{
    begin_with_membarrier();
    require(fase_ignore_lock(&shared.other).has_value(), "no room for an ignored lock");
}

/// A thread holds an ignored lock until the checkpoint is over; another one's locks count.
void ignored_or_checkpoint(int thread)
{
    if (thread == 0) {
        pthread_mutex_lock(&shared.other);
        await<std::uint32_t>(shared.flag, 1);
        pthread_mutex_unlock(&shared.other);
        require(!inside_fase(), "an ignored lock began a FASE");
    } else if (thread == 1) {
        pthread_mutex_lock(&shared.mutex);
        fase_enter(&shared.other);
        fase_leave(&shared.other);
        write_word(0);
        last_write_is_done();
        pthread_mutex_unlock(&shared.mutex);
    } else {
        must_take_checkpoint();
        shared.flag.store(1, std::memory_order_release);
    }
}

/// An ignored lock inside a FASE: neither is its depth counted, nor does its release end anything.
void ignored_inside_or_checkpoint(int thread)
{
    if (thread == 1) {
        must_take_checkpoint();
        return;
    }
    pthread_mutex_lock(&shared.mutex);
    pthread_mutex_lock(&shared.other);
    require(fase::own_record->depth.load(std::memory_order_relaxed) == 1, "an ignored lock counts inside a FASE");
    write_word(0);
    pthread_mutex_unlock(&shared.other);
    require(fase::own_record->depth.load(std::memory_order_relaxed) == 1, "the release of an ignored lock counts inside a FASE");
    write_word(0);
    last_write_is_done();
    pthread_mutex_unlock(&shared.mutex);
    require(!inside_fase(), "a FASE went on after its last lock");
}

// ---- The beginning of the accounting -------------------------------------------------------------------------

void begin_without_accounting() noexcept {}

/// An action of a thread before it is counted is in no checkpoint's reach.
void writer_or_activation(int thread)
{
    if (thread == 1) {
        begin_with_fences();
        shared.flag.store(1, std::memory_order_release);
        must_take_checkpoint();
        return;
    }
    fase_enter(nullptr);
    if (inside_fase()) {
        write_word(0);
        last_write_is_done();
    }
    fase_leave(nullptr);
    await<std::uint32_t>(shared.flag, 1);
    fase_enter(nullptr);
    require(inside_fase(), "a lock is not counted after the accounting began");
    fase_leave(nullptr);
}

// ---- The runtime's own lock ----------------------------------------------------------------------------------

constinit os::FutexLock runtime_lock{};

void writers_with_the_runtimes_lock(int)
{
    const std::scoped_lock guard{runtime_lock};
    write_word(0);
}

// ---- Signals -------------------------------------------------------------------------------------------------

void handler_with_a_fase()
{
    const bool within = durable.open[current_thread()];
    fase_enter(&shared.other);
    write_word(1);
    durable.open[current_thread()] = within;
    fase_leave(&shared.other);
}

constexpr Scenario all[] = {
    {"section", "a writer, twice inside, and a checkpoint", 2, begin_with_membarrier, writer_twice_or_checkpoint, finish_clean, 1},
    {"section-fences", "the same without membarrier", 2, begin_with_fences, writer_twice_or_checkpoint, finish_clean, 1},
    {"writers", "two writers and a checkpoint", 3, begin_with_membarrier, writers_or_checkpoint, finish_clean, 2},
    {"writers-fences", "the same without membarrier", 3, begin_with_fences, writers_or_checkpoint, finish_clean, 2},
    {"two-stops", "a writer and two checkpoints in a row", 2, begin_with_membarrier, writer_twice_or_two_checkpoints, finish_clean, 1},
    {"paused", "a FASE that pauses with a mutex that another needs", 3, begin_with_membarrier, paused_or_checkpoint, finish_clean, 2, -1,
     nullptr, 1},
    {"paused-sleeper", "a checkpoint that must come in a pause", 2, begin_with_membarrier, sleeper_in_a_pause_or_checkpoint, finish_clean,
     1},
    {"paused-fences", "the same without membarrier", 2, begin_with_fences, sleeper_in_a_pause_or_checkpoint, finish_clean, 1},
    {"nested", "nested FASEs, hand over hand", 2, begin_with_membarrier, nested_or_checkpoint, finish_clean, 1},
    {"nested-fences", "the same without membarrier", 2, begin_with_fences, nested_or_checkpoint, finish_clean, 1},
    {"mutex", "two writers with one mutex", 3, begin_with_membarrier, mutex_or_checkpoint, finish_clean, 2},
    {"nested-mutexes", "a mutex inside another's FASE, and alone", 3, begin_with_membarrier, nested_mutexes_or_checkpoint, finish_clean, 2},
    {"try-lock", "a try-lock against a lock", 3, begin_with_membarrier, try_lock_or_checkpoint, finish_clean, 2},
    {"spinlock", "two writers with one spinlock", 3, begin_with_membarrier, spinlock_or_checkpoint, finish_clean, 2},
    {"condition", "a condition wait inside a FASE, and what ends it", 3, begin_with_membarrier, consumer_producer_or_checkpoint,
     finish_clean, 2},
    {"condition-fences", "the same without membarrier", 3, begin_with_fences, consumer_producer_or_checkpoint, finish_clean, 2},
    {"waiter", "a waiter that no thread wakes before the checkpoint is over", 2, begin_with_membarrier, waiter_or_checkpoint_then_signal,
     finish_clean, 1},
    {"resumed", "an inner lock after a condition wait", 2, begin_with_membarrier, resumed_or_checkpoint, finish_clean, 1},
    {"hand-over-hand", "the same with the second of two mutexes", 2, begin_with_membarrier, hand_over_hand_waiter_or_checkpoint,
     finish_clean, 1},
    {"birth", "a thread is born and ends during a checkpoint", 2, begin_with_an_exit_hook, newborn_or_checkpoint, finish_with_one_hook_run},
    {"births", "three threads are born and end during a checkpoint", 4, begin_with_membarrier, newborns_or_checkpoint, finish_clean},
    {"robust", "a thread ends with a robust mutex", 2, begin_with_membarrier, robust_owner_or_checkpoint, finish_clean},
    {"leaked-inside", "the same inside a FASE", 3, begin_with_membarrier, leaked_inside, finish_with_a_fase_open, 1},
    {"leaked-record", "a record of an ended thread that was not given back", 3, begin_with_membarrier, leaked_record, finish_clean, 1},
    {"left-after", "a thread ends with a lock, another releases it", 4, begin_with_membarrier, left_behind_or_checkpoint, finish_clean, 2},
    {"withdrawal", "the attempt's time ends while writers enter", 3, begin_with_membarrier, writers_or_short_attempts, finish_clean, 2, -1,
     nullptr, 1},
    {"spinner", "a thread inside busy-waits for one that is held", 3, begin_after_departures, spinner_or_short_attempts, finish_clean, 2,
     -1, nullptr, 1},
    {"outside", "a thread blocks outside until the checkpoint is over", 2, begin_with_membarrier, blocked_outside_or_checkpoint,
     finish_clean, 1},
    {"ignored", "an ignored lock is held during the checkpoint", 3, begin_with_an_ignored_lock, ignored_or_checkpoint, finish_clean, 2},
    {"ignored-inside", "an ignored lock inside a FASE", 2, begin_with_an_ignored_lock, ignored_inside_or_checkpoint, finish_clean, 1},
    {"nested-by-count", "which function locks a mutex inside another", 1, begin_with_membarrier, nested_by_count, finish_clean},
    {"activation", "the accounting begins while a thread uses locks", 2, begin_without_accounting, writer_or_activation, finish_clean},
    {"runtime-lock", "three threads with the runtime's own lock", 3, begin_without_accounting, writers_with_the_runtimes_lock,
     finish_clean},
    {"fast-path", "the number of accesses of one lock and unlock", 1, begin_with_membarrier, count_of_fast_path, finish_clean, 1},
    {"marks", "a thread marks what it stores, a checkpoint copies ahead and then in the stop", 2, begin_with_membarrier,
     marker_or_collector, finish_clean, 1},
    {"marks-by-count", "the number of accesses of a mark", 1, begin_with_membarrier, count_of_marks, finish_clean, 1},
    {"uses", "a thread waits in a durable object and then uses its memory otherwise, a checkpoint captures", 2, begin_with_uses,
     user_or_capture, finish_without_uses, 2},
    {"uses-shared", "two threads wait in a durable object, a checkpoint captures", 3, begin_with_uses, two_users_or_capture,
     finish_without_uses, 3},
    {"uses-by-count", "a thread uses two durable objects", 1, begin_with_uses, count_of_uses, finish_without_uses, 1},
    {"device", "a device stores for a call, a thread sees it, a checkpoint copies ahead and then in two stops", 3, begin_with_devices,
     device_or_checkpoint, finish_without_calls, 2},
    {"device-protected", "the same with pages that are protected when they are copied", 2, begin_with_devices,
     device_or_protecting_checkpoint, finish_without_calls, 1},
    {"device-by-count", "the number of accesses of an announcement", 1, begin_with_devices, count_of_device_calls, finish_without_calls, 1},
    {"signal", "a handler with a FASE, at each operation of a writer", 2, begin_with_membarrier, writer_or_checkpoint, finish_clean, 1, 0,
     handler_with_a_fase},
    {"signal-newborn", "the same, from the thread's first lock on", 2, begin_with_membarrier, writer_or_checkpoint, finish_clean, 0, 0,
     handler_with_a_fase},
};

}  // namespace

std::span<const Scenario> scenarios() noexcept { return all; }

}  // namespace stillpoint::schedules

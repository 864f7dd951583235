// Threads that begin, end, and end badly.

#include <cstdio>
#include <cstring>

#include "os/thread_calls.hpp"
#include "runtime/fase.hpp"
#include "tests/schedules/libc_model.hpp"
#include "tests/schedules/scenario_parts.hpp"

namespace stillpoint::schedules {

/// A thread whose FASE begins when another has ended gets that one's record; with three, a second chunk is needed.
void newborns_or_checkpoint(int thread)
{
    if (thread < 3) {
        write_in_section(thread);
    } else {
        must_take_checkpoint();
    }
}

/// A thread ends with a robust mutex: the kernel ends what it guarded, and the FASE ends with the thread.
void robust_owner_or_checkpoint(int thread)
{
    if (thread == 1) {
        must_take_checkpoint();
        return;
    }
    fase_enter(&shared.mutex);
    write_word(0);
    last_write_is_done();
    robust_locks_held = 1;
}

/// As above, and inside a FASE: the record must not become another thread's.
void leaked_inside(int thread)
{
    if (thread == 1) {
        fase_enter(nullptr);
        set_exit_value(nullptr);
        shared.flag.store(1, std::memory_order_release);
    } else if (thread == 2) {
        await<std::uint32_t>(shared.flag, 1);
        write_in_section(2);
        require(!inside_fase(), "a thread got the record of a FASE that is not over");
    }
}

void finish_with_a_fase_open() noexcept {}

/// A thread ends with a record that is not given back (as when a lock is taken after the last destructor of its keys);
/// another needs one when the chunk is used up.
void leaked_record(int thread)
{
    if (thread == 1) {
        write_in_section(1);
        set_exit_value(nullptr);
        shared.flag.store(1, std::memory_order_release);
    } else if (thread == 2) {
        await<std::uint32_t>(shared.flag, 1);
        write_in_section(2);
    }
}

namespace {
constinit int hooks_run = 0;
}  // namespace

void begin_with_an_exit_hook() noexcept
{
    begin_with_membarrier();
    set_thread_exit_hook([]() noexcept { ++hooks_run; });
}

void finish_with_one_hook_run() noexcept
{
    require(hooks_run == 1, "the exit hook did not run once");
    finish_clean();
}

/// A thread ends with a lock; another, which has used locks before, releases it.
void left_behind_or_checkpoint(int thread)
{
    if (thread == 2) {
        pthread_mutex_lock(&shared.mutex);
        write_word(0);
        shared.record = fase::own_record;
        require(shared.record != nullptr, "a thread that uses locks has no record");
        shared.flag.store(1, std::memory_order_release);
    } else if (thread == 0) {
        await<std::uint32_t>(shared.flag, 1);
        // As the program would, after a join.
        await<std::uint32_t>(shared.record->state, ThreadRecord::ended_inside);
        char wanted[128];
        std::snprintf(wanted, sizeof wanted, "thread %d ended while it holds the lock at %p", os::first_thread_id + 2,
                      static_cast<void*>(&shared.mutex));
        require(std::strstr(last_message, wanted) != nullptr, "the warning does not name the thread and its lock");
        durable.open[2] = false;  // The release ends the dead thread's FASE.
        pthread_mutex_unlock(&shared.mutex);
    } else if (thread == 3) {
        must_take_checkpoint();
    }
}

}  // namespace stillpoint::schedules

// The end of the process and its copies. exit() and a return from main end the session in an exit
// handler that runs after all others; _exit, quick_exit and exec end it first. abort is a crash: nothing
// is done. fork detaches the child.

#include "interpose/process.hpp"

#include <atomic>
#include <cstdlib>

#include "api/session.hpp"
#include "interpose/real.hpp"
#include "runtime/fase.hpp"
#include "runtime/session_process.hpp"
#include "runtime/sync_objects.hpp"

extern "C" {
int __cxa_atexit(void (*handler)(void*), void* argument, void* shared_object) noexcept;
int __cxa_at_quick_exit(void (*handler)(void*), void* shared_object) noexcept;
}

namespace {

constinit std::atomic<pid_t> home_process{0};

void end_session(void*)
{
    if (stillpoint::interpose::is_home_process() || stillpoint::session_process::is_elsewhere()) {
        stillpoint::session_end();
    }
}

void before_fork() { stillpoint::session_before_fork(); }

void after_fork_in_parent() { stillpoint::session_after_fork_in_parent(); }

void after_fork_in_child()
{
    stillpoint::fase_reset_after_fork();
    stillpoint::sync_objects_detach_all();
    stillpoint::interpose::remember_home_process();
    stillpoint::interpose::forget_thread_id();
    stillpoint::session_after_fork_in_child();
}

}  // namespace

namespace stillpoint::interpose {

void remember_home_process() noexcept { home_process.store(getpid(), std::memory_order_relaxed); }

bool is_home_process() noexcept { return home_process.load(std::memory_order_relaxed) == getpid(); }

void register_process_handlers() noexcept
{
    // No shared object is named: the handlers run at exit proper, not when this library's
    // destructors do, which is before those of libraries it was loaded ahead of.
    __cxa_atexit(&end_session, nullptr, nullptr);
    __cxa_at_quick_exit(&end_session, nullptr);
    // The program's own handlers are registered later: their "before" runs before ours, their
    // "after" after ours. daemon() and forkpty() come here too.
    pthread_atfork(&before_fork, &after_fork_in_parent, &after_fork_in_child);
}

}  // namespace stillpoint::interpose

SHIM void _exit(int status)
{
    end_session(nullptr);
    REAL(_exit)(status);
    __builtin_unreachable();
}

SHIM void _Exit(int status) noexcept
{
    end_session(nullptr);
    REAL(_Exit)(status);
    __builtin_unreachable();
}

// fork without the handlers of pthread_atfork.
SHIM pid_t _Fork() noexcept
{
    before_fork();
    const pid_t child = REAL(_Fork)();
    if (child == 0) {
        after_fork_in_child();
    } else {
        after_fork_in_parent();
    }
    return child;
}

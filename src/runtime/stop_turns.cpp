#include "runtime/stop_turns.hpp"

#include <mutex>

#include "os/futex.hpp"

namespace stillpoint {

namespace {

constinit os::FutexLock turn_lock;

}  // namespace

StopReport stop_threads_in_turn(std::uint64_t attempt_ns, void (*stopped)(void*), void* context) noexcept
{
    const std::lock_guard turn(turn_lock);
    return stop_threads(attempt_ns, stopped, context);
}

void stop_turns_reset_after_fork() noexcept { turn_lock.reset_after_fork(); }

}  // namespace stillpoint

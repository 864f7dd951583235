#include "itm/global_lock.hpp"

#include <atomic>
#include <pthread.h>

namespace stillpoint::itm {

namespace {

/// The program's own kind of lock, so that with an engine that follows locks a transaction is a failure-atomic section.
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
std::atomic<bool> held{false};

/// The thread that has held it, if one did, is not in the child.
void reset_in_child()
{
    pthread_mutex_init(&lock, nullptr);
    held.store(false, std::memory_order_relaxed);
}

[[gnu::constructor]] void watch_forks() { pthread_atfork(nullptr, nullptr, &reset_in_child); }

}  // namespace

void GlobalLock::acquire() noexcept
{
    pthread_mutex_lock(&lock);
    held.store(true, std::memory_order_seq_cst);
}

void GlobalLock::release() noexcept
{
    held.store(false, std::memory_order_release);
    pthread_mutex_unlock(&lock);
}

bool GlobalLock::is_held() noexcept { return held.load(std::memory_order_seq_cst); }

}  // namespace stillpoint::itm

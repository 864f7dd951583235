// Locks in durable memory, and when a FASE gives them up.

#include <cerrno>
#include <cstring>
#include <sched.h>

#include "undo_runtime.hpp"

namespace stillpoint::undo {

namespace {

std::uint64_t present_run() noexcept { return runtime.open ? runtime.pool.variables().run : 0; }

/// The bytes of a lock after a restart are meaningless: the first to use it in this run makes it ready. Runs are even
/// numbers; the odd one before says that a thread is changing it.
void make_ready(undo_rwlock& lock) noexcept
{
    const std::uint64_t run = present_run();
    std::uint64_t seen = __atomic_load_n(&lock.run, __ATOMIC_ACQUIRE);
    while (seen != run) {
        if (seen == run - 1) {
            sched_yield();
            seen = __atomic_load_n(&lock.run, __ATOMIC_ACQUIRE);
        } else if (__atomic_compare_exchange_n(&lock.run, &seen, run - 1, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
            lock.writer = 0;
            (void)pthread_rwlock_init(&lock.lock, nullptr);
            __atomic_store_n(&lock.run, run, __ATOMIC_RELEASE);
            return;
        }
    }
}

std::uint64_t writer_of(const undo_rwlock& lock) noexcept { return __atomic_load_n(&lock.writer, __ATOMIC_RELAXED); }

void give_up(undo_rwlock& lock) noexcept
{
    __atomic_store_n(&lock.writer, std::uint64_t{0}, __ATOMIC_RELAXED);
    (void)pthread_rwlock_unlock(&lock.lock);
}

/// Whether this FASE has released the write lock already, and so has it still: then it is taken back.
bool take_back(Thread& thread, const undo_rwlock& lock) noexcept
{
    if (thread.depth == 0 || writer_of(lock) != thread.id) {
        return false;
    }
    for (std::size_t i = 0; i < thread.released.size(); ++i) {
        if (thread.released[i] == &lock) {
            thread.released.remove(i);
            return true;
        }
    }
    return false;
}

}  // namespace

void give_up_locks(Thread& thread) noexcept
{
    for (std::size_t i = 0; i < thread.released.size(); ++i) {
        give_up(*thread.released[i]);
    }
    thread.released.clear();
}

}  // namespace stillpoint::undo

using namespace stillpoint::undo;

extern "C" {

void undo_read_lock(undo_rwlock* lock)
{
    make_ready(*lock);
    if (!take_back(this_thread(), *lock)) {
        (void)pthread_rwlock_rdlock(&lock->lock);
    }
}

void undo_write_lock(undo_rwlock* lock)
{
    make_ready(*lock);
    Thread& thread = this_thread();
    if (!take_back(thread, *lock)) {
        (void)pthread_rwlock_wrlock(&lock->lock);
        __atomic_store_n(&lock->writer, thread.id, __ATOMIC_RELAXED);
    }
}

void undo_unlock(undo_rwlock* lock)
{
    Thread& thread = this_thread();
    if (writer_of(*lock) != thread.id) {
        (void)pthread_rwlock_unlock(&lock->lock);
    } else if (thread.depth > 0) {
        thread.released.push(lock);
    } else {
        give_up(*lock);
    }
}

}  // extern "C"

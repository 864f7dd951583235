// FASEs of locks, through the shims: mutexes, one inside another, and spinlocks.

#include "interpose/real.hpp"
#include "runtime/fase.hpp"
#include "tests/schedules/checks.hpp"
#include "tests/schedules/libc_model.hpp"
#include "tests/schedules/scenario_parts.hpp"

namespace stillpoint::schedules {

void mutex_or_checkpoint(int thread)
{
    if (thread < 2) {
        write_under(shared.mutex, 0);
    } else {
        must_take_checkpoint();
    }
}

void try_lock_or_checkpoint(int thread)
{
    if (thread == 2) {
        must_take_checkpoint();
    } else if (thread == 1) {
        write_under(shared.mutex, 0);
    } else if (pthread_mutex_trylock(&shared.mutex) == 0) {
        write_word(0);
        last_write_is_done();
        pthread_mutex_unlock(&shared.mutex);
    } else {
        require(!inside_fase(), "a lock that was not acquired began a FASE");
    }
}

void spinlock_or_checkpoint(int thread)
{
    if (thread == 2) {
        must_take_checkpoint();
        return;
    }
    pthread_spin_lock(&shared.spinlock);
    write_word(0);
    last_write_is_done();
    pthread_spin_unlock(&shared.spinlock);
}

/// A mutex inside another: in line where nothing speaks against it, else by libc, which has other mutexes then.
void nested_by_count(int)
{
    fase_enter(nullptr);  // A thread's first lock is taken by libc: it has no record yet.
    fase_leave(nullptr);
    for (const std::uint32_t bits : {0U, static_cast<std::uint32_t>(fase::libc_only)}) {
        fase::gate.bits.fetch_or(bits, std::memory_order_relaxed);
        mutex_calls_of_libc = 0;
        pthread_mutex_lock(&shared.mutex);
        const std::uint32_t outer = mutex_calls_of_libc;
        pthread_mutex_lock(&shared.other);
        const std::uint32_t locked = mutex_calls_of_libc - outer;
        pthread_mutex_unlock(&shared.other);
        const std::uint32_t unlocked = mutex_calls_of_libc - outer - locked;
        pthread_mutex_unlock(&shared.mutex);
        const std::uint32_t wanted = bits == 0 ? 0 : 1;
        require(outer == wanted && mutex_calls_of_libc == 4 * wanted, "the outer mutex is locked by another function than it should be");
        require(locked == wanted, "the inner mutex is locked by another function than it should be");
        require(unlocked == wanted, "the inner mutex is released by another function than it should be");
        require(!inside_fase(), "a FASE went on after its last lock");
        fase::gate.bits.fetch_and(~bits, std::memory_order_relaxed);
    }
}

/// Two mutexes in one order, the inner one also taken alone: a thread inside may wait for one that is held.
void nested_mutexes_or_checkpoint(int thread)
{
    if (thread == 2) {
        must_take_checkpoint();
    } else if (thread == 1) {
        write_under(shared.other, 1);
    } else {
        pthread_mutex_lock(&shared.mutex);
        write_word(0);
        write_under(shared.other, 1, false);
        last_write_is_done();
        pthread_mutex_unlock(&shared.mutex);
    }
}

}  // namespace stillpoint::schedules

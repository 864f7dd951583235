#include "engines/nvthreads/processes/thread_keys.hpp"

#include <cerrno>

#include "engines/nvthreads/processes/sync_calls.hpp"
#include "engines/nvthreads/processes/worker.hpp"

namespace stillpoint::nvthreads::processes {

namespace {

std::uint32_t made_here = 0;  ///< by this process, or by that which it is a copy of

int make_in_libc(pthread_key_t* key, void (*destructor)(void*)) noexcept
{
    static auto* const create = libc<int(pthread_key_t*, void (*)(void*))>("pthread_key_create");
    const int result = create(key, destructor);
    made_here += result == 0 ? 1 : 0;
    return result;
}

/// Makes the keys that other processes have made. Under the lock.
void catch_up(ThreadKeys& keys) noexcept
{
    pthread_key_t key = 0;
    while (made_here < keys.count.load(std::memory_order_relaxed) &&
           make_in_libc(&key, keys.destructors[made_here].load(std::memory_order_relaxed)) == 0) {
    }
}

}  // namespace

namespace calls {

int key_create(pthread_key_t* key, void (*destructor)(void*)) noexcept
{
    Worker& worker = Worker::own();
    ThreadKeys& keys = worker.control().keys;
    const Held lock(keys.lock, worker.number());
    catch_up(keys);
    const std::uint32_t count = keys.count.load(std::memory_order_relaxed);
    if (count == ThreadKeys::keys_max) {
        return EAGAIN;
    }
    const int result = make_in_libc(key, destructor);
    if (result == 0) {
        keys.destructors[count].store(destructor, std::memory_order_relaxed);
        keys.count.store(count + 1, std::memory_order_release);
    }
    return result;
}

/// The number is not used again: it would have to be free in every process.
int key_delete(pthread_key_t /*key*/) noexcept { return 0; }

int key_set(pthread_key_t key, const void* value) noexcept
{
    static auto* const set = libc<int(pthread_key_t, const void*)>("pthread_setspecific");
    Worker& worker = Worker::own();
    ThreadKeys& keys = worker.control().keys;
    if (made_here != keys.count.load(std::memory_order_acquire)) [[unlikely]] {
        const Held lock(keys.lock, worker.number());
        catch_up(keys);
    }
    return set(key, value);
}

int key_create_c11(tss_t* key, tss_dtor_t destructor) noexcept { return key_create(key, destructor) == 0 ? thrd_success : thrd_error; }
void key_delete_c11(tss_t key) noexcept { static_cast<void>(key_delete(key)); }
int key_set_c11(tss_t key, void* value) noexcept { return key_set(key, value) == 0 ? thrd_success : thrd_error; }

}  // namespace calls

}  // namespace stillpoint::nvthreads::processes

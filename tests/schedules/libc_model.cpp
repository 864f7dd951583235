#include "tests/schedules/libc_model.hpp"

#include <algorithm>
#include <cstring>

#include "core/sync.hpp"
#include "interpose/real.hpp"
#include "os/log.hpp"
#include "os/futex_calls.hpp"
#include "os/thread_calls.hpp"
#include "runtime/kernel_lock_call.hpp"
#include "runtime/sync_uses.hpp"
#include "runtime/thread_registry.hpp"

namespace stillpoint {

namespace real {
constinit Addresses addresses{};
}  // namespace real

// The rest of the library, as far as explored code reaches it: what lies in durable memory a scenario says.
bool sync_uses::is_durable_object(const void*, SyncObjectKind) noexcept { return true; }

// No tracker protects pages.
namespace kernel_locks {
constinit std::atomic<bool> are_guarded{false};
kernel_writes::Slot begin(const void*, std::size_t, const void*) noexcept { return kernel_writes::no_slot; }
kernel_writes::Slot begin_after_thread(const void*) noexcept { return kernel_writes::no_slot; }
void release(kernel_writes::Slot) noexcept {}
void was_left(void*, std::size_t) noexcept {}
}  // namespace kernel_locks

namespace os {
bool is_told(Severity severity) noexcept { return severity > Severity::debug; }
void write_line(Severity, std::string_view text) noexcept { schedules::note_message(text); }
}  // namespace os

std::uint32_t count_robust_locks_held(void (*)(void*) noexcept) noexcept { return schedules::robust_locks_held; }

namespace schedules {

constinit char last_message[256] = {};
constinit std::uint32_t mutex_calls_of_libc = 0;
constinit std::uint32_t robust_locks_held = 0;

void note_message(std::string_view text) noexcept
{
    const std::size_t bytes = std::min(text.size(), sizeof last_message - 1);
    std::memcpy(last_message, text.data(), bytes);
    last_message[bytes] = 0;
}

namespace {

using FutexWord = sync::Atomic<std::uint32_t>;
static_assert(sizeof(FutexWord) == sizeof(int));

FutexWord& word_of(pthread_mutex_t* mutex) noexcept { return *reinterpret_cast<FutexWord*>(&mutex->__data.__lock); }

void own(pthread_mutex_t* mutex) noexcept
{
    mutex->__data.__owner = os::thread_id();
    ++mutex->__data.__nusers;
}

// glibc 2.36: nptl/lowlevellock.c and nptl/pthread_mutex_lock.c, the plain kind.
int lock_mutex(pthread_mutex_t* mutex) noexcept
{
    ++mutex_calls_of_libc;
    FutexWord& word = word_of(mutex);
    std::uint32_t seen = 0;
    if (!word.compare_exchange_strong(seen, 1, std::memory_order_acquire)) {
        while (word.exchange(2, std::memory_order_acquire) != 0) {
            os::futex_wait(word, 2);
        }
    }
    own(mutex);
    return 0;
}

int try_lock_mutex(pthread_mutex_t* mutex) noexcept
{
    std::uint32_t seen = 0;
    if (!word_of(mutex).compare_exchange_strong(seen, 1, std::memory_order_acquire)) {
        return EBUSY;
    }
    own(mutex);
    return 0;
}

int unlock_mutex(pthread_mutex_t* mutex) noexcept
{
    ++mutex_calls_of_libc;
    mutex->__data.__owner = 0;
    --mutex->__data.__nusers;
    if (word_of(mutex).exchange(0, std::memory_order_release) == 2) {
        os::futex_wake(word_of(mutex), 1);
    }
    return 0;
}

int lock_spin(pthread_spinlock_t* spinlock) noexcept
{
    auto& word = *reinterpret_cast<FutexWord*>(const_cast<int*>(spinlock));
    while (word.exchange(1, std::memory_order_acquire) != 0) {
        schedules::Operation operation{.kind = Kind::await, .order = std::memory_order_relaxed, .address = &word, .bytes = sizeof word};
        operation.site = std::source_location::current();
        perform(operation);
    }
    return 0;
}

int unlock_spin(pthread_spinlock_t* spinlock) noexcept
{
    reinterpret_cast<FutexWord*>(const_cast<int*>(spinlock))->store(0, std::memory_order_release);
    return 0;
}

FutexWord& signals_of(pthread_cond_t* condition) noexcept { return *reinterpret_cast<FutexWord*>(condition); }

int wait_for_condition(pthread_cond_t* condition, pthread_mutex_t* mutex) noexcept
{
    const auto signals = signals_of(condition).load(std::memory_order_relaxed);
    unlock_mutex(mutex);
    os::futex_wait(signals_of(condition), signals);
    return lock_mutex(mutex);
}

template <class Function>
void install(std::atomic<void*>& address, Function* function) noexcept
{
    address.store(reinterpret_cast<void*>(function), std::memory_order_relaxed);
}

}  // namespace

void install_libc_model() noexcept
{
    using real::addresses;
    install(addresses.pthread_mutex_lock, &lock_mutex);
    install(addresses.pthread_mutex_trylock, &try_lock_mutex);
    install(addresses.pthread_mutex_unlock, &unlock_mutex);
    install(addresses.pthread_spin_lock, &lock_spin);
    install(addresses.pthread_spin_unlock, &unlock_spin);
    install(addresses.pthread_cond_wait, &wait_for_condition);
}

int signal_condition(pthread_cond_t& condition) noexcept
{
    signals_of(&condition).fetch_add(1, std::memory_order_relaxed);
    os::futex_wake(signals_of(&condition), INT_MAX);
    return 0;
}

}  // namespace schedules
}  // namespace stillpoint

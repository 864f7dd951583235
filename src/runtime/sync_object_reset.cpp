#include "runtime/sync_object_reset.hpp"

#include <cstdint>
#include <cstring>
#include <linux/futex.h>

namespace stillpoint {

namespace {

/// Kernel thread ids end here (PID_MAX_LIMIT); no process has more threads, or waiters.
constexpr unsigned thread_id_max = 4'194'304;

constexpr unsigned condition_flag_bits = 3;    // Process-shared, and the clock.

constexpr int mutex_robust_bit = 16;           // PTHREAD_MUTEX_ROBUST_NORMAL_NP of glibc's pthreadP.h
constexpr int mutex_kind_bits = 0x3ff;         // type, robust, inherit, protect, shared, elision
constexpr int mutex_not_recoverable = 0x7ffffffe;
constexpr int mutex_inconsistent = 0x7fffffff;

/// glibc's internal struct pthread_barrier: what pthread_barrier_t holds.
struct BarrierState {
    unsigned in;
    unsigned current_round;
    unsigned count;
    int shared;
    unsigned out;
};
static_assert(sizeof(BarrierState) <= sizeof(pthread_barrier_t));

/// glibc's internal struct new_sem on machines with 64-bit atomics.
struct SemaphoreState {
    unsigned value;
    unsigned waiters;
    int shared;
    int padding;
};
static_assert(sizeof(SemaphoreState) <= sizeof(sem_t));

bool is_shared_flag(int flag) noexcept { return flag == 0 || flag == 1 || flag == 128; }

bool reset_condition(pthread_cond_t& condition) noexcept
{
    constexpr unsigned waiters_shift = 3;
    auto& state = condition.__data;
    if (state.__wrefs >> waiters_shift > thread_id_max || state.__g1_orig_size >> 2 > thread_id_max ||
        state.__g_refs[0] >> 1 > thread_id_max || state.__g_refs[1] >> 1 > thread_id_max) {
        return false;
    }
    const unsigned flags = state.__wrefs & condition_flag_bits;
    std::memset(&condition, 0, sizeof condition);
    state.__wrefs = flags;
    return true;
}

bool reset_barrier(pthread_barrier_t& barrier) noexcept
{
    BarrierState state;
    std::memcpy(&state, &barrier, sizeof state);
    if (state.count == 0 || state.count > 0x7fffffffu || !is_shared_flag(state.shared)) {
        return false;
    }
    state.in = 0;
    state.current_round = 0;
    state.out = 0;
    std::memcpy(&barrier, &state, sizeof state);
    return true;
}

bool reset_semaphore(sem_t& semaphore) noexcept
{
    SemaphoreState state;
    std::memcpy(&state, &semaphore, sizeof state);
    if (state.value > 0x7fffffffu || state.waiters > thread_id_max || !is_shared_flag(state.shared)) {
        return false;
    }
    state.waiters = 0;
    std::memcpy(&semaphore, &state, sizeof state);
    return true;
}

bool is_mutex(const __pthread_mutex_s& state) noexcept
{
    const bool owner_plausible = (state.__owner >= 0 && state.__owner <= int{thread_id_max}) || state.__owner == mutex_inconsistent ||
                                 state.__owner == mutex_not_recoverable;
    return (state.__kind & ~mutex_kind_bits) == 0 && owner_plausible &&
           (static_cast<unsigned>(state.__lock) & FUTEX_TID_MASK) <= thread_id_max && state.__nusers <= thread_id_max;
}

bool reset_mutex(pthread_mutex_t& mutex) noexcept
{
    auto& state = mutex.__data;
    if (!is_mutex(state)) {
        return false;
    }
    // Not recoverable is permanently, and not locked: what its data needs cannot be known here.
    const int owner = state.__owner == mutex_not_recoverable ? mutex_not_recoverable : 0;
    state.__lock = 0;
    state.__count = 0;
    state.__owner = owner;
    state.__nusers = 0;
    state.__list = {};
    return true;
}

/// The next owner must get EOWNERDEAD, as it would have in the process that died.
bool reset_orphaned_mutex(pthread_mutex_t& mutex) noexcept
{
    auto& state = mutex.__data;
    if (!is_mutex(state) || (state.__kind & mutex_robust_bit) == 0) {
        return false;
    }
    if ((static_cast<unsigned>(state.__lock) & (FUTEX_TID_MASK | FUTEX_OWNER_DIED)) != 0) {
        state.__lock = static_cast<int>(FUTEX_OWNER_DIED);
    }
    state.__list = {};
    return true;
}

bool reset_rwlock(pthread_rwlock_t& rwlock) noexcept
{
    auto& state = rwlock.__data;
    if (state.__flags > 2 || !is_shared_flag(state.__shared) || state.__cur_writer < 0 || state.__cur_writer > int{thread_id_max}) {
        return false;
    }
    const auto flags = state.__flags;
    const auto shared = state.__shared;
    std::memset(&rwlock, 0, sizeof rwlock);
    state.__flags = flags;
    state.__shared = shared;
    return true;
}

bool reset_spinlock(pthread_spinlock_t& spinlock) noexcept
{
#if defined(__x86_64__)
    constexpr int free_value = 1;
    const bool plausible = spinlock <= 1;
#else
    constexpr int free_value = 0;
    const bool plausible = spinlock == 0 || spinlock == 1;
#endif
    if (plausible) {
        spinlock = free_value;
    }
    return plausible;
}

}  // namespace

std::size_t sync_object_bytes(SyncObjectKind kind) noexcept
{
    switch (kind) {
    case SyncObjectKind::condition: return sizeof(pthread_cond_t);
    case SyncObjectKind::barrier: return sizeof(pthread_barrier_t);
    case SyncObjectKind::semaphore: return sizeof(sem_t);
    case SyncObjectKind::mutex:
    case SyncObjectKind::orphaned_mutex: return sizeof(pthread_mutex_t);
    case SyncObjectKind::rwlock: return sizeof(pthread_rwlock_t);
    case SyncObjectKind::spinlock: return sizeof(pthread_spinlock_t);
    }
    return 0;
}

bool sync_object_is_aligned(const void* object, SyncObjectKind kind) noexcept
{
    const std::size_t alignment = kind == SyncObjectKind::spinlock ? alignof(pthread_spinlock_t) : alignof(pthread_mutex_t);
    static_assert(alignof(pthread_cond_t) == alignof(pthread_mutex_t) && alignof(pthread_barrier_t) == alignof(pthread_mutex_t) &&
                  alignof(sem_t) == alignof(pthread_mutex_t) && alignof(pthread_rwlock_t) == alignof(pthread_mutex_t));
    return reinterpret_cast<std::uintptr_t>(object) % alignment == 0;
}

std::uint32_t sync_object_fingerprint(const void* object, SyncObjectKind kind) noexcept
{
    std::uint32_t fixed[2] = {};
    switch (kind) {
    case SyncObjectKind::condition:
        fixed[0] = __atomic_load_n(&static_cast<const pthread_cond_t*>(object)->__data.__wrefs, __ATOMIC_RELAXED) & condition_flag_bits;
        break;
    case SyncObjectKind::barrier: {
        const auto& state = *static_cast<const BarrierState*>(object);
        fixed[0] = state.count;
        fixed[1] = static_cast<std::uint32_t>(state.shared);
        break;
    }
    case SyncObjectKind::semaphore: fixed[0] = static_cast<std::uint32_t>(static_cast<const SemaphoreState*>(object)->shared); break;
    case SyncObjectKind::mutex:
    case SyncObjectKind::orphaned_mutex:
        fixed[0] = static_cast<std::uint32_t>(static_cast<const pthread_mutex_t*>(object)->__data.__kind);
        break;
    case SyncObjectKind::rwlock:
        fixed[0] = static_cast<const pthread_rwlock_t*>(object)->__data.__flags;
        fixed[1] = static_cast<std::uint32_t>(static_cast<const pthread_rwlock_t*>(object)->__data.__shared);
        break;
    case SyncObjectKind::spinlock: break;
    }
    const std::uint64_t mixed = (fixed[0] ^ std::uint64_t{fixed[1]} << 32 ^ static_cast<std::uint64_t>(kind) << 60) * 0x9e3779b97f4a7c15u;
    return static_cast<std::uint32_t>(mixed >> 32) | 1;
}

bool reset_sync_object(void* object, SyncObjectKind kind) noexcept
{
    // An entry of a damaged table may name any address.
    if (!sync_object_is_aligned(object, kind)) {
        return false;
    }
    switch (kind) {
    case SyncObjectKind::condition: return reset_condition(*static_cast<pthread_cond_t*>(object));
    case SyncObjectKind::barrier: return reset_barrier(*static_cast<pthread_barrier_t*>(object));
    case SyncObjectKind::semaphore: return reset_semaphore(*static_cast<sem_t*>(object));
    case SyncObjectKind::mutex: return reset_mutex(*static_cast<pthread_mutex_t*>(object));
    case SyncObjectKind::orphaned_mutex: return reset_orphaned_mutex(*static_cast<pthread_mutex_t*>(object));
    case SyncObjectKind::rwlock: return reset_rwlock(*static_cast<pthread_rwlock_t*>(object));
    case SyncObjectKind::spinlock:
        return reset_spinlock(*const_cast<pthread_spinlock_t*>(static_cast<volatile pthread_spinlock_t*>(object)));
    }
    return false;
}

}  // namespace stillpoint

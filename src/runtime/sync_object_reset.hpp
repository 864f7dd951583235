#pragma once
// Makes one synchronisation object of glibc fresh, as if its process had never used it, keeping
// what its creator chose (clock, process-shared, kind, count, value). Layouts: glibc 2.34 to 2.41,
// sysdeps/nptl/bits/struct_mutex.h and neighbours.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <pthread.h>
#include <semaphore.h>

#include "runtime/sync_uses.hpp"

namespace stillpoint {

/// Bytes of an object of that kind; 0: no such kind.
[[nodiscard]] std::size_t sync_object_bytes(SyncObjectKind kind) noexcept;

inline constexpr std::size_t sync_object_bytes_max =
    std::max({sizeof(pthread_cond_t), sizeof(pthread_barrier_t), sizeof(sem_t), sizeof(pthread_mutex_t), sizeof(pthread_rwlock_t)});

/// glibc's objects are; what is not, a damaged table names, or a program that breaks the rules of its language.
[[nodiscard]] bool sync_object_is_aligned(const void* object, SyncObjectKind kind) noexcept;

/// A fingerprint of what the object's creator chose and nothing changes later. Not 0.
[[nodiscard]] std::uint32_t sync_object_fingerprint(const void* object, SyncObjectKind kind) noexcept;

/// False, and nothing is changed, if the bytes cannot be such an object: the program put something
/// else there without destroying it.
bool reset_sync_object(void* object, SyncObjectKind kind) noexcept;

}  // namespace stillpoint

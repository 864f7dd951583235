#pragma once
// Makes one synchronisation object of glibc fresh, as if its process had never used it, keeping
// what its creator chose (clock, process-shared, kind, count, value). Layouts: glibc 2.34 to 2.41,
// sysdeps/nptl/bits/struct_mutex.h and neighbours.

#include <cstddef>

#include "runtime/sync_objects.hpp"

namespace stillpoint {

/// Bytes of an object of that kind; 0: no such kind.
[[nodiscard]] std::size_t sync_object_bytes(SyncObjectKind kind) noexcept;

/// False, and nothing is changed, if the bytes cannot be such an object: the program put something
/// else there without destroying it.
bool reset_sync_object(void* object, SyncObjectKind kind) noexcept;

}  // namespace stillpoint

#pragma once
// Named objects, for the functions of the C API that make them.

#include <cstddef>

#include "core/result.hpp"
#include "runtime/session_state.hpp"

namespace stillpoint {

/// Whether `handle` may name an object. Errors: invalid_argument (nullptr, or a length that no name has).
[[nodiscard]] Result<void> check_handle(const char* handle);
/// The object of that name, or a new one that `make` gives, inside a FASE and under the directory's lock, zeroed. nullptr with errno and
/// sp_last_error(): a bad handle, another size, no memory, what `make` says.
[[nodiscard]] void* named_object_of(const char* handle, std::size_t size_bytes, Result<void*> (*make)(void* context, Session& session),
                                    void* context);
/// A named object made as sp_calloc does; without a pool, ordinary memory of that alignment.
[[nodiscard]] void* named_object(const char* handle, std::size_t size_bytes, std::size_t alignment_bytes);

}  // namespace stillpoint

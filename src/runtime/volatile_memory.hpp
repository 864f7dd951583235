#pragma once
// Ordinary memory, for calls of a program that runs without a pool. Failure: nullptr with errno and sp_last_error().

#include <cstddef>

namespace stillpoint {

/// Whether sp_aligned_alloc takes this alignment; where not, errno and sp_last_error() say so.
[[nodiscard]] bool is_alignment(std::size_t alignment_bytes) noexcept;

/// Reports that there is none. Returns nullptr.
[[gnu::cold]] void* no_volatile_memory(std::size_t size_bytes) noexcept;

/// Does what sp_aligned_alloc does.
[[nodiscard]] void* allocate_volatile(std::size_t alignment_bytes, std::size_t size_bytes) noexcept;

}  // namespace stillpoint

#pragma once
// Where the threads' stacks lie: one place each, in memory that all processes share, so that a pointer to a variable on another thread's
// stack works. The top of a place is the thread's own: its thread-local variables and libc's control block.

#include <cstddef>
#include <cstdint>

#include "core/result.hpp"

namespace stillpoint::nvthreads::processes {

class ThreadStacks {
public:
    static constexpr std::uint64_t place_bytes = std::uint64_t{8} << 20;

    /// Before threads are made. Returns the first address. Errors: no_memory.
    [[nodiscard]] static Result<std::uintptr_t> reserve();
    /// The place's end becomes this process's own. Returns how many bytes; 0: no memory.
    [[nodiscard]] static std::uint64_t begin_place(std::uintptr_t stacks, std::uint32_t index) noexcept;
    /// No thread uses it any more.
    static void clear_place(std::uintptr_t stacks, std::uint32_t index) noexcept;
    [[nodiscard]] static std::byte* place(std::uintptr_t stacks, std::uint32_t index) noexcept
    {
        return reinterpret_cast<std::byte*>(stacks + index * place_bytes);
    }
    /// Moves the stack of the calling thread, the first of its process, into shared memory, where it is. Errors: unsupported; no_memory.
    [[nodiscard]] static Result<void> share_first_stack();
};

/// The variables of the program and of its own libraries become shared memory, where they are. Errors: no_memory.
[[nodiscard]] Result<void> share_variables();

}  // namespace stillpoint::nvthreads::processes

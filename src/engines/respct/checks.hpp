#pragma once
// Bad use of respct.h. Its checks (sp_respct_check_...) and `stillpoint lint` need to be told by the API's other functions what the program
// does: these call the notes below. Threads: any. Cost while no check is on: a load and a branch.

#include <atomic>
#include <cstddef>

namespace stillpoint::respct::checks {

/// The functions that `stillpoint lint` is called by at each of these. None of them calls malloc.
struct Listener {
    void (*restart_point)() noexcept;
    void (*allow)() noexcept;
    void (*modified)(const void* address, std::size_t size_bytes) noexcept;
    void (*allocated)(const void* block, std::size_t size_bytes) noexcept;
    void (*freed)(const void* block, std::size_t size_bytes) noexcept;
};
/// Once; it lives forever.
void listen(const Listener& listener) noexcept;

/// A check was called, or there is a listener.
[[gnu::visibility("hidden")]] extern constinit std::atomic<bool> is_watched;
[[gnu::always_inline]] inline bool watched() noexcept { return is_watched.load(std::memory_order_relaxed); }

void restart_point() noexcept;
void allow() noexcept;
void prevent() noexcept;
void modified(const void* address, std::size_t size_bytes) noexcept;
void allocated(const void* block, std::size_t size_bytes) noexcept;

/// First thing in sp_respct_restart_point, before it looks at locks.
inline void note_restart_point() noexcept
{
    if (watched()) [[unlikely]] {
        restart_point();
    }
}
/// Called in sp_respct_checkpoint_allow and sp_respct_checkpoint_prevent, which are tracked from the start.
inline void note_allow() noexcept { allow(); }
inline void note_prevent() noexcept { prevent(); }
/// Called in sp_respct_add_modified.
inline void note_modified(const void* address, std::size_t size_bytes) noexcept
{
    if (watched()) [[unlikely]] {
        modified(address, size_bytes);
    }
}
/// A block of typed memory is given out. Of memory that dies the runtime tells by itself (runtime/dying_memory.hpp).
inline void note_allocated(const void* block, std::size_t size_bytes) noexcept
{
    if (watched()) [[unlikely]] {
        allocated(block, size_bytes);
    }
}

}  // namespace stillpoint::respct::checks

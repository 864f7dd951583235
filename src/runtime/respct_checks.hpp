#pragma once
// Bad use of respct.h. Its checks (sp_respct_check_...) and `stillpoint lint` need to be told by the API's other functions what the program
// does: these call the notes below. Threads: any. Cost while nobody listens: a load and a branch.

#include <atomic>
#include <cstddef>

namespace stillpoint {

/// What `stillpoint lint` does at each of these. Nothing in it calls malloc.
struct RespctListener {
    void (*restart_point)() noexcept;
    void (*allow)() noexcept;
    void (*modified)(const void* address, std::size_t size_bytes) noexcept;
    void (*allocated)(const void* block, std::size_t size_bytes) noexcept;
    void (*freed)(const void* block, std::size_t size_bytes) noexcept;
};
/// Set before `respct_watched`, once.
void respct_listen(const RespctListener& listener) noexcept;

namespace respct_checks {

/// A check was called, or there is a listener.
[[gnu::visibility("hidden")]] extern constinit std::atomic<bool> is_watched;

void restart_point() noexcept;
void allow() noexcept;
void prevent() noexcept;
void modified(const void* address, std::size_t size_bytes) noexcept;
void allocated(const void* block, std::size_t size_bytes) noexcept;
void freed(const void* block, std::size_t size_bytes) noexcept;

[[gnu::always_inline]] inline bool watched() noexcept { return is_watched.load(std::memory_order_relaxed); }

}  // namespace respct_checks

/// First thing in sp_respct_restart_point, before it looks at locks.
inline void respct_checks_note_restart_point() noexcept
{
    if (respct_checks::watched()) [[unlikely]] {
        respct_checks::restart_point();
    }
}
/// In sp_respct_checkpoint_allow and sp_respct_checkpoint_prevent; these are kept track of from the start.
inline void respct_checks_note_allow() noexcept { respct_checks::allow(); }
inline void respct_checks_note_prevent() noexcept { respct_checks::prevent(); }
/// In sp_respct_add_modified.
inline void respct_checks_note_modified(const void* address, std::size_t size_bytes) noexcept
{
    if (respct_checks::watched()) [[unlikely]] {
        respct_checks::modified(address, size_bytes);
    }
}
/// A block of typed memory is given out, and freed.
inline void respct_checks_note_allocated(const void* block, std::size_t size_bytes) noexcept
{
    if (respct_checks::watched()) [[unlikely]] {
        respct_checks::allocated(block, size_bytes);
    }
}
inline void respct_checks_note_freed(const void* block, std::size_t size_bytes) noexcept
{
    if (respct_checks::watched()) [[unlikely]] {
        respct_checks::freed(block, size_bytes);
    }
}

}  // namespace stillpoint

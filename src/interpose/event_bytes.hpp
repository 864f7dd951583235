#pragma once
// How much the kernel stores where a call waits for events.

#include <cstddef>
#include <sys/epoll.h>
#include <sys/select.h>

namespace stillpoint {

/// Bytes of a set for descriptors below `count`.
[[nodiscard]] constexpr std::size_t fd_set_bytes(int count) noexcept
{
    constexpr std::size_t word_bits = 8 * sizeof(fd_mask);
    return count <= 0 ? 0 : (static_cast<std::size_t>(count) + word_bits - 1) / word_bits * sizeof(fd_mask);
}

[[nodiscard]] constexpr std::size_t events_bytes(int capacity) noexcept
{
    return capacity <= 0 ? 0 : static_cast<std::size_t>(capacity) * sizeof(epoll_event);
}

}  // namespace stillpoint

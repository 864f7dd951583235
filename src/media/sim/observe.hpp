#pragma once
// Where the real media tell a trace what they have just done to their file, so that the explorer can hold
// their own fences and syncs to account. Only files built with the canaries' switches do; in the
// product these functions do nothing.

#include <span>

#include "core/result.hpp"
#include "core/units.hpp"
#include "media/sim/store_tracer.hpp"
#include "media/sim/trace.hpp"

namespace stillpoint::sim {

#if defined(STILLPOINT_CANARIES)
inline namespace with_canaries {
inline void observe(EventKind kind, std::uint64_t offset = 0, const void* data = nullptr,
                    std::uint64_t size = 0, std::uint64_t value = 0) noexcept
{
    record(kind, offset, data, size, value);
}

/// The program's own stores to the mapping at `address`, of which `writable` is another; maps it again. Nothing where nothing is recorded.
inline Result<void> observe_stores(const TracedRange& range, int fd)
{
    return recording.load(std::memory_order_acquire) != nullptr ? trace_stores(range, fd) : Result<void>{};
}

/// The write back of lines at these addresses.
inline void observe_write_backs(std::span<const std::uintptr_t> line_addresses) noexcept
{
    if (recording.load(std::memory_order_acquire) == nullptr) {
        return;
    }
    const BetweenTracedStores alone;  // A store whose bytes can be read is recorded.
    for (const std::uintptr_t address : line_addresses) {
        const std::uint64_t offset = traced_offset(address);
        record(EventKind::write_back, offset / cache_line_bytes * cache_line_bytes, nullptr, cache_line_bytes);
    }
}
}
#else
inline namespace without_canaries {
constexpr void observe(EventKind, std::uint64_t = 0, const void* = nullptr, std::uint64_t = 0,
                       std::uint64_t = 0) noexcept
{
}
inline Result<void> observe_stores(const TracedRange&, int) { return {}; }
constexpr void observe_write_backs(std::span<const std::uintptr_t>) noexcept {}
}
#endif

}  // namespace stillpoint::sim

#pragma once
// Where the real media tell a trace what they have just done to their file, so that the explorer can hold
// their own fences and syncs to account. Only files built with the canaries' switches do; in the
// product observe() is empty.

#include "media/sim/trace.hpp"

namespace stillpoint::sim {

#if defined(STILLPOINT_CANARIES)
inline namespace with_canaries {
inline void observe(EventKind kind, std::uint64_t offset = 0, const void* data = nullptr,
                    std::uint64_t size = 0, std::uint64_t value = 0) noexcept
{
    record(kind, offset, data, size, value);
}
}
#else
inline namespace without_canaries {
constexpr void observe(EventKind, std::uint64_t = 0, const void* = nullptr, std::uint64_t = 0,
                       std::uint64_t = 0) noexcept
{
}
}
#endif

}  // namespace stillpoint::sim

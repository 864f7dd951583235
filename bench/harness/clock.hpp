#pragma once
// Time and CPU time, in nanoseconds.

#include <cstdint>

namespace bench {

[[nodiscard]] std::uint64_t monotonic_ns() noexcept;
/// CPU time of this process, all threads, user and system.
[[nodiscard]] std::uint64_t process_cpu_ns() noexcept;

}  // namespace bench

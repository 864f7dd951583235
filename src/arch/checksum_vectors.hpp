#pragma once
// XXH3 compiled for vector units that not every CPU has; checksum.cpp asks the CPU.

#include <cstddef>
#include <cstdint>

namespace stillpoint::detail {

#if defined(__x86_64__)
/// The CPU must have AVX2.
[[nodiscard]] std::uint64_t checksum_by_avx2(const void* data, std::size_t size, std::uint64_t seed) noexcept;
#endif

}  // namespace stillpoint::detail

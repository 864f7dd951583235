#include "arch/checksum.hpp"

#include <atomic>

#include "arch/checksum_vectors.hpp"

namespace stillpoint::detail {

namespace {

using Function = std::uint64_t (*)(const void*, std::size_t, std::uint64_t) noexcept;

std::uint64_t checksum_by_baseline(const void* data, std::size_t size, std::uint64_t seed) noexcept
{
    return XXH3_64bits_withSeed(data, size, seed);
}

std::uint64_t checksum_by_choice(const void* data, std::size_t size, std::uint64_t seed) noexcept;

// The first call chooses: it may come before any constructor has run.
constinit std::atomic<Function> chosen{&checksum_by_choice};

std::uint64_t checksum_by_choice(const void* data, std::size_t size, std::uint64_t seed) noexcept
{
    Function choice = &checksum_by_baseline;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2")) {
        choice = &checksum_by_avx2;
    }
#endif
    chosen.store(choice, std::memory_order_relaxed);
    return choice(data, size, seed);
}

}  // namespace

std::uint64_t checksum_of_many(const void* data, std::size_t size, std::uint64_t seed) noexcept
{
    return chosen.load(std::memory_order_relaxed)(data, size, seed);
}

}  // namespace stillpoint::detail

#include "chunking.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "../harness/random.hpp"

namespace bench {

namespace {

constexpr unsigned mask_bits = 11;  // 2 KiB on average beyond the minimum

std::array<std::uint64_t, 256> make_gears()
{
    std::array<std::uint64_t, 256> gears;
    Random random(3);
    for (std::uint64_t& gear : gears) {
        gear = random.next();
    }
    return gears;
}
const std::array<std::uint64_t, 256> gears = make_gears();

std::uint64_t mixed(std::uint64_t word) noexcept
{
    word = (word ^ word >> 31) * 0x9e3779b97f4a7c15u;
    return word ^ word >> 29;
}

}  // namespace

std::size_t first_chunk_bytes(std::span<const std::byte> data) noexcept
{
    const std::size_t limit = std::min(data.size(), chunk_bytes_max);
    if (limit <= chunk_bytes_min) {
        return limit;
    }
    std::uint64_t hash = 0;
    for (std::size_t at = chunk_bytes_min - 64; at < limit; ++at) {
        hash = (hash << 1) + gears[static_cast<std::uint8_t>(data[at])];
        if (at >= chunk_bytes_min && hash >> (64 - mask_bits) == 0) {
            return at + 1;
        }
    }
    return limit;
}

Fingerprint fingerprint_of(std::span<const std::byte> chunk) noexcept
{
    Fingerprint print{0x243f6a8885a308d3u ^ chunk.size(), 0x13198a2e03707344u + chunk.size()};
    for (std::size_t at = 0; at < chunk.size(); at += sizeof(std::uint64_t)) {
        std::uint64_t word = 0;
        std::memcpy(&word, chunk.data() + at, std::min(sizeof word, chunk.size() - at));
        print.low = mixed(print.low ^ word);
        print.high = (print.high + word) * 0xd6e8feb86659fd93u;
        print.high ^= print.high >> 32;
    }
    return {mixed(print.low ^ print.high >> 7), mixed(print.high)};
}

}  // namespace bench

#pragma once
// The inserted records: keys of 32 bytes as YCSB has them, values of the size that is asked for.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace bench {

inline constexpr std::size_t key_bytes = 32;

/// A common beginning, then bytes that are spread over the key range, so that the order of insertion is not that of the keys.
class RecordKey {
public:
    explicit RecordKey(std::uint64_t number) noexcept
    {
        std::memcpy(bytes_.data(), "user", prefix_bytes);
        std::uint64_t word = number + 1;
        for (std::size_t at = prefix_bytes; at < key_bytes; at += sizeof word) {
            word = (word ^ word >> 31) * 0x9e3779b97f4a7c15u;
            std::memcpy(bytes_.data() + at, &word, at + sizeof word <= key_bytes ? sizeof word : key_bytes - at);
        }
    }
    [[nodiscard]] std::string_view view() const noexcept { return {bytes_.data(), bytes_.size()}; }

private:
    static constexpr std::size_t prefix_bytes = 4;

    std::array<char, key_bytes> bytes_;
};

/// A value in a buffer of its own, of which each insertion changes the first word: a value is as random as its first word, and making it
/// costs next to nothing beside copying it.
class RecordValue {
public:
    explicit RecordValue(std::size_t bytes) : bytes_(bytes, 'v') {}
    [[nodiscard]] std::string_view of(std::uint64_t number) noexcept
    {
        const std::uint64_t word = (number + 1) * 0x9e3779b97f4a7c15u;
        std::memcpy(bytes_.data(), &word, sizeof word);
        return bytes_;
    }

private:
    std::string bytes_;
};

}  // namespace bench

#pragma once
// The durable marker of byte-addressable media: the timestamp up to which every transaction is durable, one word that is moved by
// compare and swap [SPHT §3.1, "isPers", Algorithm 1 lines 32 to 44].

#include <cstdint>
#include <optional>

#include "core/result.hpp"
#include "logs/commit_order.hpp"
#include "media/medium.hpp"

namespace stillpoint::logs {

/// The word in the pool: the timestamp << 5, and its remainder by 31, plus 1, which a flipped bit changes. 0: none was written yet, and no
/// log has a record.
[[nodiscard]] constexpr std::uint64_t encode_marker(Timestamp timestamp) noexcept { return timestamp << 5 | (timestamp % 31 + 1); }
/// nullopt: the word is damaged.
[[nodiscard]] constexpr std::optional<Timestamp> decode_marker(std::uint64_t word) noexcept
{
    const Timestamp timestamp = word >> 5;
    return word == 0 || (word & 31) == timestamp % 31 + 1 ? std::optional(timestamp) : std::nullopt;
}

/// The word after the marker, which never changes: bytes that got there from elsewhere lack it.
inline constexpr std::uint64_t marker_magic = 0x314b'5241'4d52'5453;  // "STRMARK1"

class DurableMarker {
public:
    /// `offset`: of a cache line in the file of its own.
    DurableMarker(Medium& medium, std::uint64_t offset, CommitOrder& order) noexcept : medium_(medium), offset_(offset), order_(order) {}

    /// Before anything is logged: makes the word durable that was found, which may be in the CPU's caches only.
    void start() noexcept;
    /// Returns when everything up to `timestamp` is durable. The caller has awaited what precedes it; `later_updates` is what
    /// await_preceding() returned. False: the medium has lost something, and nothing is known to be durable.
    [[nodiscard]] bool raise(Timestamp timestamp, bool later_updates) noexcept;
    /// As raise(), for one that only waits: another transaction will move the marker.
    [[nodiscard]] bool wait(Timestamp timestamp) const noexcept;

private:
    Medium& medium_;
    std::uint64_t offset_;
    CommitOrder& order_;
};

}  // namespace stillpoint::logs

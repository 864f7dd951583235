#pragma once
// Where the bytes of the logs lie in this process. Readers of logs know only this: a mapping of the pool, a mirror in DRAM and buffers
// that were read from a file all look alike.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "logs/redo_layout.hpp"

namespace stillpoint::logs {

[[nodiscard]] constexpr std::uint64_t chunk_of(Position position) noexcept { return position / chunk_bytes; }
[[nodiscard]] constexpr std::uint64_t offset_in_chunk(Position position) noexcept { return position % chunk_bytes; }
[[nodiscard]] constexpr Position position_of(std::uint64_t chunk, std::uint64_t offset) noexcept { return chunk * chunk_bytes + offset; }

/// A record can begin at `position`, as far as the number of chunks tells. Links are checked by it before they are followed.
[[nodiscard]] constexpr bool is_record_position(Position position, std::uint64_t chunks) noexcept
{
    const std::uint64_t offset = offset_in_chunk(position);
    return chunk_of(position) < chunks && offset % cache_line_bytes == 0 && offset >= sizeof(ChunkHeader) && offset < header_copy_offset;
}

/// A record as replay takes it. A transaction of several parts has several, with one timestamp.
struct RecordRef {
    Timestamp timestamp;
    Position position;
    bool operator==(const RecordRef&) const = default;
};

struct LogBytes {
    const std::byte* const* chunks;  ///< the chunk_bytes of each, in the order of Position
    std::uint32_t count;

    /// The caller knows that `position` is in range.
    [[nodiscard]] const RecordHeader* record_at(Position position) const noexcept
    {
        return reinterpret_cast<const RecordHeader*>(chunks[chunk_of(position)] + offset_in_chunk(position));
    }
};

[[nodiscard]] inline const std::uint64_t* payload_of(const RecordHeader* record) noexcept
{
    return reinterpret_cast<const std::uint64_t*>(record + 1);
}

/// Threads that commit write links while others read them.
[[nodiscard]] inline std::uint64_t load_link(const RecordHeader* record) noexcept
{
    return std::atomic_ref(const_cast<RecordHeader*>(record)->link).load(std::memory_order_acquire);
}

}  // namespace stillpoint::logs

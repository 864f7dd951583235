#pragma once
// The checksums of redo logs, and the rules that a chunk's header and a record must satisfy before anything of them is used.

#include <cstdint>
#include <optional>

#include "logs/redo_layout.hpp"

namespace stillpoint::logs {

[[nodiscard]] std::uint64_t chunk_checksum(const ChunkHeader& header) noexcept;
/// The header if the cache line holds one.
[[nodiscard]] std::optional<ChunkHeader> chunk_header_in(const std::byte* line) noexcept;

/// RecordHeader::checksum. The header's own field of that name and `link` do not count. The high header_check_bits are a checksum of the
/// header alone and of its place: they tell a record that a crash has torn, or that was damaged, from bytes of an earlier use.
[[nodiscard]] std::uint64_t record_checksum(const RecordHeader& header, const void* payload_words, std::uint64_t chunk_use,
                                            std::uint64_t offset_in_chunk) noexcept;
inline constexpr unsigned header_check_bits = 24;

/// The timestamp that the header has; 0: none that a record can have.
[[nodiscard]] constexpr Timestamp timestamp_in(const RecordHeader& header) noexcept
{
    const Timestamp timestamp = header.timestamp >> 1;
    return (header.timestamp & 1) != 0 && timestamp <= timestamp_max ? timestamp : 0;
}

enum class RecordState {
    absent,   ///< no record was ever written here, or nothing is left of its header
    broken,   ///< the header is whole and belongs here, the rest does not fit
    flipped,  ///< one bit of the header is wrong, or of its checksum
    valid,
};

/// How much to do for bytes that are not a valid record.
enum class Effort {
    find_whole,    ///< never says `flipped`
    find_flipped,  ///< also tries each bit of the header: about a microsecond
};

struct CheckedRecord {
    RecordState state = RecordState::absent;
    Timestamp timestamp = 0;  ///< as it was written; 0: absent
    std::uint32_t words = 0;
    std::uint32_t part = 0;
};

/// The record that begins at `offset` of the chunk: in its chunk, checksum right, each run of a known kind, in one page and in the image.
[[nodiscard]] CheckedRecord check_record(const std::byte* chunk, std::uint64_t chunk_use, std::uint64_t offset, std::uint64_t image_words,
                                         Effort effort = Effort::find_whole) noexcept;

/// The runs fill the payload, each lies in one page of the image, and no count is 0.
[[nodiscard]] bool runs_are_valid(const std::uint64_t* payload, std::uint64_t words, std::uint64_t image_words) noexcept;

}  // namespace stillpoint::logs

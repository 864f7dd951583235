#pragma once
// Checksums and headers of log entries and chunks: what the writers and the scanner agree on.

#include <cstring>

#include "arch/checksum.hpp"
#include "engines/pronto/semantic_log_layout.hpp"

namespace stillpoint::pronto {

/// Where an entry lies in all times of an object's log: binds its checksum to the place, so that what an earlier use of the chunk
/// left there never passes.
constexpr std::uint64_t place_of(std::uint64_t chunk_sequence, std::uint64_t offset_in_chunk) noexcept
{
    return chunk_sequence * chunk_bytes + offset_in_chunk;
}

inline std::uint64_t chunk_checksum(const ChunkHeader& header) noexcept
{
    ChunkHeader copy = header;
    copy.checksum = 0;
    return checksum64(&copy, sizeof copy, chunk_checksum_seed);
}

/// The key of an object's log in one run: what an earlier run left behind its last chunk header is not taken for this one's.
inline std::uint64_t log_key_of(std::uint64_t object, std::uint64_t generation) noexcept { return mix64(object, generation); }

/// Hash of the arguments alone: computed while the operation runs.
inline std::uint64_t arguments_hash(const void* arguments, std::uint64_t bytes, std::uint64_t log_key, std::uint64_t place) noexcept
{
    return checksum64(arguments, bytes, log_key + place * 0x9e3779b97f4a7c15u);
}

constexpr std::uint16_t entry_tag(std::uint64_t log_key, std::uint64_t place) noexcept
{
    return static_cast<std::uint16_t>((log_key * 0xff51afd7ed558ccdu ^ (place + 1) * 0xc4ceb9fe1a85ec53u) >> 48);
}

inline std::uint64_t entry_checksum(const EntryHeader& header, std::uint64_t hash_of_arguments) noexcept
{
    const std::uint64_t kind = std::uint64_t{header.tag} << 16 | std::uint64_t{header.method} << 8 | header.flags;
    const std::uint64_t words[4] = {header.number, std::uint64_t{header.argument_bytes} << 32 | kind,
                                    std::uint64_t{header.behind} << 32 | header.part, hash_of_arguments};
    return checksum64(words, sizeof words, 0);
}

inline std::uint64_t record_checksum(const ObjectRecord& record) noexcept
{
    return checksum64(&record.identity, offsetof(ObjectRecord, committed) - offsetof(ObjectRecord, identity), record_checksum_seed);
}

/// The distance of an operation to the newest durable one before it: EntryHeader::behind.
constexpr std::uint32_t behind_of(std::uint64_t number, std::uint64_t durable) noexcept
{
    return number - durable > UINT32_MAX ? UINT32_MAX : static_cast<std::uint32_t>(number - durable);
}

}  // namespace stillpoint::pronto

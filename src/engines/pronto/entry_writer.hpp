#pragma once
// Puts an entry's bytes where they become durable: non-temporal stores on byte-addressable media, a mirror in DRAM on others.

#include <cstring>

#include "engines/pronto/entry_codec.hpp"
#include "engines/pronto/live_object.hpp"
#include "media/medium.hpp"

namespace stillpoint::pronto {

/// An entry's first line: the header and what of the arguments fits.
struct alignas(cache_line_bytes) FirstLine {
    std::byte bytes[cache_line_bytes] = {};

    FirstLine(const EntryHeader& header, const std::byte* arguments) noexcept
    {
        std::memcpy(bytes, &header, sizeof header);
        const std::size_t size = header.argument_bytes < inline_argument_bytes ? header.argument_bytes : inline_argument_bytes;
        std::memcpy(bytes + sizeof header, arguments, size);
    }
};

/// Bytes of an entry's lines after its first.
constexpr std::uint64_t rest_bytes_for(std::uint64_t argument_bytes) noexcept { return entry_bytes_for(argument_bytes) - cache_line_bytes; }

/// The header of an operation's part, whole. `flags`: without entry_has_more.
inline EntryHeader make_header(const Operation& operation, const EntryPlace& part, std::uint32_t part_number, bool has_more,
                               std::uint64_t hash, std::uint64_t durable, std::uint8_t flags) noexcept
{
    EntryHeader header{};
    header.number = operation.number;
    header.argument_bytes = part.argument_bytes;
    header.tag = entry_tag(operation.object->log_key, part.place);
    header.method = operation.method;
    header.flags = static_cast<std::uint8_t>(flags | (has_more ? entry_has_more : 0));
    header.behind = behind_of(operation.number, durable);
    header.part = part_number;
    header.checksum = entry_checksum(header, hash);
    return header;
}

}  // namespace stillpoint::pronto

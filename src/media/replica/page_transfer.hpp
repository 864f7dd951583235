#pragma once
// Brings a medium to the bytes of another in one step: a crash at any moment leaves all of the old bytes or all of the new ones.
//
// Pages that differ are written to the end of the medium first, after its present bytes: their numbers, themselves, and at last a
// trailer, its last page, that vouches for them. From then on any process that opens the medium for writing copies them to their
// places (finish_transfer), as the sender does itself, and then takes the trailer away.
//
//   present bytes | numbers of the pages | the pages | zeroes | trailer (1 page)

#include <cstdint>
#include <memory>

#include "core/result.hpp"
#include "media/medium.hpp"

namespace stillpoint {

/// The bytes of a trailer; the rest of its page is zero.
struct TransferTrailer {
    static constexpr std::uint8_t magic_bytes[8] = {0x93, 'S', 'T', 'T', 'R', 'F', '\r', '\n'};
    static constexpr std::uint32_t version_known = 1;

    std::uint8_t magic[8];
    std::uint32_t version;
    std::uint32_t zero;
    std::uint64_t checksum;        ///< of all bytes, this field taken as 0
    std::uint64_t medium_bytes;    ///< its size: the trailer is its last page
    std::uint64_t numbers_offset;
    std::uint64_t pages_offset;
    std::uint64_t pages;
    std::uint64_t numbers_checksum;
    std::uint64_t pages_checksum;
};

struct TransferFigures {
    std::uint64_t bytes_compared = 0;
    std::uint64_t pages_sent = 0;
};

/// Whether the bytes of `from` are those of `to`, too; what `to` has beyond is not examined. Cost: reads both. Errors: io.
[[nodiscard]] Result<bool> have_same_bytes(const Medium& from, const Medium& to);

/// Writes the first `size_bytes` of `from` to the new medium `to`; pages of zeroes are left out. Not durable yet.
/// Errors: pool_truncated (`from` is smaller), io, no_space.
[[nodiscard]] Result<void> copy_to_new(const Medium& from, Medium& to, std::uint64_t size_bytes);

/// Gives `to` the bytes of `from`; it is at least as large afterwards, and what it has beyond is not examined. Durable on return.
/// Cost: reads both, writes what differs twice, 4 syncs; no sync where nothing differs. Errors: io, no_space, no_memory.
[[nodiscard]] Result<TransferFigures> transfer_pages(const Medium& from, Medium& to);

/// Ends a transfer that was cut off after its trailer was durable. Cost: reads one page where there is none.
/// Errors: pool_corrupt (the trailer vouches for other bytes), io, no_space.
[[nodiscard]] Result<void> finish_transfer(Medium& medium);

/// As finish_transfer(), for a medium that is open for reading: the bytes of the transfer stay in memory.
[[nodiscard]] Result<std::unique_ptr<Medium>> with_transfer_finished(std::unique_ptr<Medium> medium);

}  // namespace stillpoint

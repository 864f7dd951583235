#include "logs/record_checks.hpp"

#include <algorithm>
#include <cstring>

#include "arch/checksum.hpp"
#include "core/canary.hpp"

namespace stillpoint::logs {

namespace {

constexpr std::uint64_t header_check_mask = ~std::uint64_t{0} << (64 - header_check_bits);

std::uint64_t header_hash(const RecordHeader& header, std::uint64_t chunk_use, std::uint64_t offset) noexcept
{
    const std::uint64_t fields[4] = {header.timestamp, std::uint64_t{header.words} | (std::uint64_t{header.part} << 32), chunk_use, offset};
    return XXH3_64bits(fields, sizeof fields);
}

bool has_own_check(const RecordHeader& header, std::uint64_t hash) noexcept
{
    return ((header.checksum ^ hash) & header_check_mask) == 0 || is_removed(Canary::redo_header_check);
}

/// The low bits, which cover the payload as well. The header counts by its hash.
bool has_payload_check(const RecordHeader& header, std::uint64_t hash, const std::byte* payload) noexcept
{
    return ((header.checksum ^ checksum64(payload, std::size_t{header.words} * 8, hash)) & ~header_check_mask) == 0 ||
           is_removed(Canary::redo_record_checksum);
}

bool fits(const RecordHeader& header, std::uint64_t offset) noexcept
{
    return timestamp_in(header) != 0 && offset + sizeof header + std::uint64_t{header.words} * 8 <= header_copy_offset;
}

CheckedRecord found(RecordState state, const RecordHeader& header) noexcept
{
    return {state, timestamp_in(header), header.words, header.part};
}

/// Flips bit `bit` of what the header's check covers: 128 bits.
void flip(RecordHeader& header, unsigned bit) noexcept
{
    if (bit < 64) {
        header.timestamp ^= std::uint64_t{1} << bit;
    } else if (bit < 96) {
        header.words ^= std::uint32_t{1} << (bit - 64);
    } else {
        header.part ^= std::uint32_t{1} << (bit - 96);
    }
}

CheckedRecord look_for_flip(RecordHeader header, const std::byte* payload, std::uint64_t chunk_use, std::uint64_t offset) noexcept
{
    if (fits(header, offset) && has_payload_check(header, header_hash(header, chunk_use, offset), payload)) {
        return found(RecordState::flipped, header);  // In the check of the header.
    }
    for (unsigned bit = 0; bit < 128; ++bit) {
        flip(header, bit);
        const std::uint64_t hash = header_hash(header, chunk_use, offset);
        if (has_own_check(header, hash) && fits(header, offset) && has_payload_check(header, hash, payload)) {
            return found(RecordState::flipped, header);
        }
        flip(header, bit);
    }
    return {};
}

}  // namespace

std::uint64_t chunk_checksum(const ChunkHeader& header) noexcept
{
    ChunkHeader copy = header;
    copy.checksum = 0;
    return checksum64(&copy, sizeof copy, chunk_checksum_seed);
}

std::optional<ChunkHeader> chunk_header_in(const std::byte* line) noexcept
{
    ChunkHeader header;
    std::memcpy(&header, line, sizeof header);
    const bool is_whole = header.checksum == chunk_checksum(header) || is_removed(Canary::redo_chunk_checksum);
    if (std::memcmp(header.magic, chunk_magic, sizeof header.magic) != 0 || !is_whole || header.follows > timestamp_max) {
        return std::nullopt;
    }
    return header;
}

std::uint64_t record_checksum(const RecordHeader& header, const void* payload_words, std::uint64_t chunk_use,
                              std::uint64_t offset_in_chunk) noexcept
{
    const std::uint64_t hash = header_hash(header, chunk_use, offset_in_chunk);
    return (hash & header_check_mask) | (checksum64(payload_words, std::size_t{header.words} * 8, hash) & ~header_check_mask);
}

bool runs_are_valid(const std::uint64_t* payload, std::uint64_t words, std::uint64_t image_words) noexcept
{
    constexpr std::uint64_t page_words = page_bytes / 8;
    std::uint64_t at = 0;
    while (at < words) {
        const Run run = decode_run(payload[at]);
        std::uint64_t covered = run.count;
        switch (run.kind) {
        case RunKind::words:
        case RunKind::zeroes: break;
        case RunKind::bytes:
            if (run.count > UINT8_MAX) {
                return false;
            }
            covered = std::min<std::uint64_t>(run.count, 1);
            break;
        default: return false;
        }
        if (covered == 0 || run.word % page_words + covered > page_words || run.word + covered > image_words) {
            return false;
        }
        at += 1 + run_data_words(run);
    }
    return at == words;
}

CheckedRecord check_record(const std::byte* chunk, std::uint64_t chunk_use, std::uint64_t offset, std::uint64_t image_words,
                           Effort effort) noexcept
{
    RecordHeader header;
    std::memcpy(&header, chunk + offset, sizeof header);
    const std::byte* const payload = chunk + offset + sizeof header;
    const std::uint64_t hash = header_hash(header, chunk_use, offset);
    if (!has_own_check(header, hash) || !fits(header, offset)) {
        return effort == Effort::find_flipped ? look_for_flip(header, payload, chunk_use, offset) : CheckedRecord{};
    }
    const bool is_valid = has_payload_check(header, hash, payload) &&
                          runs_are_valid(reinterpret_cast<const std::uint64_t*>(payload), header.words, image_words);
    return found(is_valid ? RecordState::valid : RecordState::broken, header);
}

}  // namespace stillpoint::logs

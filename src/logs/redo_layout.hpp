#pragma once
// The bytes of redo logs: structures and constants only. docs/internals/format/redo-log.md explains them.
//
//   log part of a segment:  chunks of chunk_bytes; each belongs to one log, or to none
//   chunk:                  ChunkHeader | records, each at a multiple of a cache line | ChunkHeader once more
//   record:                 RecordHeader | words of payload: runs, each a header word and its data
//
// A log belongs to one thread; its records have rising timestamps. What is larger than a chunk's room has several records with one
// timestamp, one after the other in the same log.
// Source: [SPHT §3.1, "Data structures"]. There an entry is an address and a value and the timestamp ends the transaction; here
// neighbouring words share one header, and a checksum tells a torn record, or a damaged one.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/units.hpp"

namespace stillpoint::logs {

/// Orders transactions: ticks of a clock that rises over all runs of a pool, from 1.
using Timestamp = std::uint64_t;
inline constexpr Timestamp timestamp_max = (Timestamp{1} << 59) - 1;

inline constexpr std::uint64_t chunk_pages = 64;
inline constexpr std::uint64_t chunk_bytes = chunk_pages * page_bytes;
inline constexpr std::uint8_t chunk_magic[8] = {0x93, 'S', 'T', 'R', 'E', 'D', 'O', 'C'};
inline constexpr std::uint64_t chunk_checksum_seed = 0x5354'5245'444f'4348;

/// The first cache line of a chunk in use, and its last: without either its records could not be read.
struct ChunkHeader {
    std::uint8_t magic[8];
    std::uint64_t checksum;  ///< of the other fields
    std::uint64_t use;       ///< counts the uses of all chunks of the pool, from 1: of two headers the later one is in force
    std::uint64_t log;       ///< number of the log, from 0
    std::uint64_t index;     ///< of the chunk in its log, from 0, never reused in a run
    std::uint64_t run;       ///< PoolFacts::generation of the run that wrote it: logs of two runs are two logs
    std::uint64_t follows;   ///< Timestamp of the log's newest record in earlier chunks: a lost chunk is noticed by it. 0: there is none
    std::uint64_t reserved;  ///< zero
};
static_assert(sizeof(ChunkHeader) == cache_line_bytes && std::is_trivially_copyable_v<ChunkHeader>);
static_assert(offsetof(ChunkHeader, checksum) == 8 && offsetof(ChunkHeader, use) == 16 && offsetof(ChunkHeader, log) == 24);
static_assert(offsetof(ChunkHeader, index) == 32 && offsetof(ChunkHeader, run) == 40 && offsetof(ChunkHeader, follows) == 48);

/// In the chunk, of the header's copy; records end there.
inline constexpr std::uint64_t header_copy_offset = chunk_bytes - sizeof(ChunkHeader);

/// Where a record begins: number of the chunk times chunk_bytes, plus the offset in it. No record has 0: a chunk begins with its header.
using Position = std::uint64_t;

/// Links join records, not transactions: the parts of one are linked to each other like neighbours.
struct RecordHeader {
    std::uint64_t timestamp;  ///< Timestamp << 1 | 1: never a pointer, never 0
    std::uint32_t words;      ///< of payload
    std::uint32_t part;       ///< 0, 1, … of the records of one transaction; bit 31: more parts follow; bit 30: it stands alone
    std::uint64_t checksum;   ///< record_checksum(): of the other fields but `link`, the payload, the chunk's use and the offset in it
    std::uint64_t link;       ///< Position of the neighbour in timestamp order, with bit 0 set; 0: not known. A hint: never trusted
};
static_assert(sizeof(RecordHeader) == 32 && std::is_trivially_copyable_v<RecordHeader>);
static_assert(offsetof(RecordHeader, words) == 8 && offsetof(RecordHeader, part) == 12);
static_assert(offsetof(RecordHeader, checksum) == 16 && offsetof(RecordHeader, link) == 24);
inline constexpr std::uint32_t more_parts = std::uint32_t{1} << 31;
/// The transaction is one record, and everything that it depends on was durable before the record was written: it counts as soon as it is
/// whole, whatever the marker says.
inline constexpr std::uint32_t stands_alone = std::uint32_t{1} << 30;
constexpr std::uint32_t part_number(std::uint32_t part) noexcept { return part & ~(more_parts | stands_alone); }

inline constexpr std::uint64_t record_words_max = (header_copy_offset - sizeof(ChunkHeader) - sizeof(RecordHeader)) / 8;

constexpr std::uint64_t record_bytes_for(std::uint64_t words) noexcept
{
    return round_up(sizeof(RecordHeader) + words * 8, cache_line_bytes);
}

/// A run's header word. Low 2 bits: kind; next 10: count or mask; the others: image offset of the first word, in words.
enum class RunKind : std::uint64_t {
    words = 1,   ///< `count` words follow
    bytes = 2,   ///< one word follows, of which the bytes count that the mask has (bit i: byte i of the word in memory)
    zeroes = 3,  ///< `count` words become zero; nothing follows
};
inline constexpr unsigned run_count_shift = 2;
inline constexpr unsigned run_count_bits = 10;
inline constexpr unsigned run_word_shift = run_count_shift + run_count_bits;
/// A run lies in one page of the image, so that it belongs to one replayer [SPHT §3.3].
inline constexpr std::uint64_t run_words_max = page_bytes / 8;
static_assert(run_words_max < (std::uint64_t{1} << run_count_bits));

struct Run {
    RunKind kind;
    std::uint64_t count;  ///< of words, or the mask
    std::uint64_t word;   ///< image offset / 8
};

constexpr std::uint64_t encode_run(Run run) noexcept
{
    return static_cast<std::uint64_t>(run.kind) | (run.count << run_count_shift) | (run.word << run_word_shift);
}
constexpr Run decode_run(std::uint64_t header) noexcept
{
    return {static_cast<RunKind>(header & 3), (header >> run_count_shift) & ((std::uint64_t{1} << run_count_bits) - 1),
            header >> run_word_shift};
}
/// Words of data that follow a run's header.
constexpr std::uint64_t run_data_words(Run run) noexcept
{
    return run.kind == RunKind::words ? run.count : run.kind == RunKind::bytes ? 1 : 0;
}

}  // namespace stillpoint::logs

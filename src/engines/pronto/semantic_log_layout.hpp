#pragma once
// The bytes that pronto keeps besides the snapshots: structures and constants only. docs/internals/format/pronto.md explains them.
//
//   log part of a segment:  chunks of chunk_bytes; each belongs to one object, or to none
//   chunk:                  ChunkHeader | entries, each at a multiple of a cache line | ChunkHeader once more
//   image:                  ObjectRecord | the object, one heap block, which the directory of handles names
//
// Source: [Pronto §5.2.1]. There a log has a header with the newest commit number and the places of head and tail. Here nothing is
// written twice: an entry carries its commit number, and head and tail follow from the entries and the snapshot.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/units.hpp"
#include "engines/pronto/log_layout.hpp"
#include "stillpoint/pronto.h"

namespace stillpoint::pronto {

inline constexpr std::uint64_t chunk_bytes = log_chunk_pages * page_bytes;

inline constexpr std::uint8_t chunk_magic[8] = {0x93, 'S', 'T', 'C', 'H', 'U', 'N', 'K'};
inline constexpr std::uint64_t chunk_checksum_seed = 0x5354'5052'4348'554e;

/// The first cache line of a chunk that an object's log has, and the last one: without either its entries could not be read.
struct ChunkHeader {
    std::uint8_t magic[8];
    std::uint64_t checksum;      ///< of the other fields
    std::uint64_t object;        ///< ObjectRecord::identity
    std::uint64_t sequence;      ///< number of the chunk in the object's log, from 0, never reused
    std::uint64_t generation;    ///< PoolFacts::generation of the run that wrote it
    std::uint64_t first_number;  ///< the first commit number that run gave: older entries with it or a later one are void
    std::uint64_t beginning;     ///< counts those of all logs in that run: of two headers of one chunk the later one is in force
    std::uint64_t reserved;      ///< zero
};
static_assert(sizeof(ChunkHeader) == cache_line_bytes && std::is_trivially_copyable_v<ChunkHeader>);
static_assert(offsetof(ChunkHeader, checksum) == 8 && offsetof(ChunkHeader, object) == 16);
static_assert(offsetof(ChunkHeader, sequence) == 24 && offsetof(ChunkHeader, generation) == 32);
static_assert(offsetof(ChunkHeader, first_number) == 40 && offsetof(ChunkHeader, beginning) == 48);

/// In the chunk, of the header's copy; entries end there.
inline constexpr std::uint64_t header_copy_offset = chunk_bytes - sizeof(ChunkHeader);

enum EntryFlag : std::uint8_t {
    /// Made durable only together with, or after, all operations with smaller numbers: a missing one ends the log. Without it the
    /// operation was durable before its lock was released, so that it depends on durable ones only [equation 5.1].
    entry_follows_all = 1,
    /// More arguments of the operation are in an entry with the same number and the next part.
    entry_has_more = 2,
    /// Made durable by one fence with the operation that has the number before it, by the same thread: where that one is missing
    /// this one is left out, too.
    entry_follows_previous = 4,
};

/// One operation. Its arguments follow directly.
struct EntryHeader {
    std::uint64_t checksum;  ///< of the other fields and the arguments, seeded by object and place
    std::uint64_t number;  ///< commit number: 1, 2, … of the object
    std::uint32_t argument_bytes;
    std::uint16_t tag;  ///< entry_tag() of object and place: spares the scanner most checksums of what is not an entry
    std::uint8_t method;  ///< number in the object's table of methods
    std::uint8_t flags;  ///< EntryFlag
    std::uint32_t behind;  ///< operations up to number - behind were durable when this one was committed
    std::uint32_t part;  ///< of an operation whose arguments do not fit in one chunk: 0, 1, …
};
static_assert(sizeof(EntryHeader) == 32 && std::is_trivially_copyable_v<EntryHeader>);
static_assert(offsetof(EntryHeader, number) == 8 && offsetof(EntryHeader, argument_bytes) == 16);
static_assert(offsetof(EntryHeader, tag) == 20);
static_assert(offsetof(EntryHeader, method) == 22 && offsetof(EntryHeader, flags) == 23);
static_assert(offsetof(EntryHeader, behind) == 24 && offsetof(EntryHeader, part) == 28);

/// Arguments that lie in the entry's first line.
inline constexpr std::uint64_t inline_argument_bytes = cache_line_bytes - sizeof(EntryHeader);
/// Bytes of arguments in one entry: longer arguments are divided among several, each in a chunk of its own.
inline constexpr std::uint64_t entry_argument_bytes_max = header_copy_offset - sizeof(ChunkHeader) - sizeof(EntryHeader);

constexpr std::uint64_t entry_bytes_for(std::uint64_t argument_bytes) noexcept
{
    return round_up(sizeof(EntryHeader) + argument_bytes, cache_line_bytes);
}

inline constexpr std::uint64_t record_magic = 0x314a424f504f5453;
inline constexpr std::uint64_t record_checksum_seed = 0x5354'4f42'4a45'4354;

/// A method as the pool knows it: log entries name it by its place in the table.
struct MethodRecord {
    char name[SP_PRONTO_NAME_BYTES_MAX + 1];  ///< NUL-terminated, rest zero
    char signature[SP_PRONTO_SIGNATURE_BYTES_MAX + 1];  ///< the same
};
static_assert(sizeof(MethodRecord) == 320);

/// In front of each object. It and the table lie in the image, so a snapshot has them as of its moment.
struct ObjectRecord {
    std::uint64_t magic;
    std::uint64_t checksum;  ///< of identity to type_name
    std::uint64_t identity;  ///< of no other object, in all times of the pool
    std::uint64_t size_bytes;  ///< of the object
    std::uint64_t methods_address;  ///< MethodRecord[method_count], a heap block
    std::uint32_t method_count;
    std::uint32_t object_offset;  ///< from this record
    char type_name[SP_PRONTO_NAME_BYTES_MAX + 1];
    // From here on the checksum does not cover the bytes.
    std::uint64_t committed;  ///< the image has the operations up to this number
    std::uint64_t slot;  ///< in the running process's table of objects; of no meaning in a pool that is opened
    std::uint64_t twin_address;  ///< option verify_replay: a second object that runs each operation again; 0: none
    std::uint64_t log_sequence;  ///< chunks with a smaller ChunkHeader::sequence have nothing that the image lacks
    std::uint64_t operation_ns;  ///< how long an operation took, of those that were timed: for an estimate
    std::uint64_t reserved[4];  ///< zero
    sp_pronto_run run;  ///< of the running process; of no meaning in a pool that is opened
};
static_assert(sizeof(ObjectRecord) == 192 && std::is_trivially_copyable_v<ObjectRecord>);
static_assert(offsetof(ObjectRecord, checksum) == 8 && offsetof(ObjectRecord, identity) == 16);
static_assert(offsetof(ObjectRecord, size_bytes) == 24 && offsetof(ObjectRecord, methods_address) == 32);
static_assert(offsetof(ObjectRecord, method_count) == 40 && offsetof(ObjectRecord, object_offset) == 44);
static_assert(offsetof(ObjectRecord, type_name) == 48 && offsetof(ObjectRecord, committed) == 112);
static_assert(offsetof(ObjectRecord, slot) == 120 && offsetof(ObjectRecord, twin_address) == 128);
static_assert(offsetof(ObjectRecord, log_sequence) == 136 && offsetof(ObjectRecord, operation_ns) == 144);
static_assert(offsetof(ObjectRecord, run) == sizeof(ObjectRecord) - sizeof(sp_pronto_run), "the object follows, as pronto.h says");

}  // namespace stillpoint::pronto

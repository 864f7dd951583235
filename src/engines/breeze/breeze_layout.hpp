#pragma once
// The bytes that breeze keeps in a pool file. Structures and constants only; docs/internals/format/breeze.md explains them.
//
//   engine area:  1 page: unused, zero; in a pool on a file 4 pages: the commit record (pool/commit_layout.hpp)
//   segment:      the image as it lies in memory; it begins at a multiple of 2 MiB, and there is one segment. In a pool on a file it begins
//                 at any page, and the two halves of the journal follow
//
// The image [Breeze, thesis §3.2.1, Figure 3.7]; offsets are in bytes from its first byte:
//   pool header | type records | log headers | logs | activation records | redo record of the counts | rewrite records | zones
//
// The data segment is cut into zones of 256 KiB. The blocks of a zone have one size, which the block header at the zone's first byte has;
// a larger block takes whole zones. Every block begins with its header, in one cache line; the object follows it.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/units.hpp"

namespace stillpoint::breeze {

inline constexpr std::uint32_t layout_version = 1;
inline constexpr std::uint32_t journaled_layout_version = 3;  ///< of a pool on a file: a journal follows the image
inline constexpr std::uint64_t segment_alignment_bytes = 2 * mib;

inline constexpr std::uint8_t header_magic[8] = {0x93, 'S', 'T', 'B', 'R', 'E', 'E', 'Z'};
inline constexpr std::size_t bases_max = 64;  ///< addresses that the history holds

/// The image's first page. Each of the words from `generation` on is changed by single stores.
struct PoolHeader {
    std::uint8_t magic[8];
    std::uint32_t header_bytes;  ///< 4096
    std::uint32_t log_count;
    std::uint64_t checksum;  ///< of what comes before and after it up to `reserved`, it taken as 0
    std::uint8_t uuid[16];  ///< the pool's
    std::uint64_t image_bytes;
    std::uint64_t key;  ///< mixed into every checksum
    std::uint8_t reserved[8];  ///< zero
    // A line: the history of addresses [Breeze, thesis §3.2.6].
    std::uint64_t generation;  ///< newest: pointers of objects that have it are valid at its base
    std::uint64_t oldest_generation;  ///< that an object may have; less than `generation` while pointers are being rewritten
    std::uint64_t clean;  ///< 1: closed in an orderly way [safe shutdown]
    std::uint64_t collecting;  ///< 1: a collection has begun to free objects that point at each other
    std::uint64_t versions_reserved;  ///< no object has this version, or a larger one
    std::uint64_t types_bytes;  ///< of the type records
    std::uint64_t spare[2];
    std::uint64_t root;  ///< offset of the root object; 0: none
    std::uint64_t root_line[7];
    std::uint64_t bases[bases_max];  ///< of generation g at g % bases_max
    std::uint8_t rest[4096 - 192 - 8 * bases_max];
};
static_assert(sizeof(PoolHeader) == page_bytes && std::is_trivially_copyable_v<PoolHeader>);
static_assert(offsetof(PoolHeader, checksum) == 16);
static_assert(offsetof(PoolHeader, generation) == 64);
static_assert(offsetof(PoolHeader, root) == 128);
static_assert(offsetof(PoolHeader, bases) == 192);

inline constexpr std::uint64_t types_offset = page_bytes;
inline constexpr std::uint64_t types_bytes_max = 128 * kib;
inline constexpr std::size_t name_bytes = 48;  ///< with the terminating zero

struct FieldRecord {
    char name[name_bytes];
    std::uint32_t kind;  ///< nvm_field_kind
    std::uint32_t tag_bytes;
    std::uint64_t offset;
    std::uint64_t count;  ///< 0: up to the object's end
    std::uint64_t tag_offset;
    std::uint64_t tag_value;
    std::uint64_t nested;  ///< number of the type of a nested structure, whose record comes before this one; 0: none
};
static_assert(sizeof(FieldRecord) == 96);

struct TypeRecord {
    std::uint64_t checksum;  ///< of the bytes after it, fields included
    std::uint32_t id;
    std::uint32_t field_count;
    std::uint64_t size;
    char name[name_bytes];
};
static_assert(sizeof(TypeRecord) == 72);

inline constexpr std::uint64_t logs_max = 32;

/// One for each log: what its transactions have done. The two lines are written by different threads.
struct LogHeader {
    std::uint64_t finished;  ///< the newest transaction of the log that has committed or was rolled back
    std::uint64_t reserved[7];
    std::uint64_t applied;  ///< the newest transaction whose activation record is in the reference counts
    std::uint64_t applied_end;  ///< where in the log's activation records the next one is looked for, in bytes
    std::uint64_t reserved_too[6];
};
static_assert(sizeof(LogHeader) == 128);

/// Old bytes of one range; they follow, up to a multiple of 64. Valid if the transaction is the one after LogHeader::finished, and the
/// checksum fits.
struct UndoEntry {
    std::uint64_t checksum;  ///< of the fields after it and of the bytes
    std::uint64_t transaction;
    std::uint64_t offset;
    std::uint64_t size;
};
static_assert(sizeof(UndoEntry) == 32);

/// Objects that gain and lose references by the pointers that a transaction has changed [Breeze, thesis Figure 3.11, Algorithm 2]; pairs
/// follow.
struct ActivationRecord {
    std::uint64_t checksum;  ///< of the fields after it and of the pairs
    std::uint64_t transaction;
    std::uint64_t count;
};
static_assert(sizeof(ActivationRecord) == 24);
struct PointerChange {
    std::uint64_t old_offset;  ///< of the header of the object that loses a reference; 0: none
    std::uint64_t new_offset;  ///< of the one that gains one; 0: none
};

/// Words and their new values; they follow. Stored again at opening while the checksum fits, so applying them twice does no harm.
struct RedoRecord {
    std::uint64_t checksum;  ///< of the fields after it and of the words; 0: none
    std::uint64_t count;
    std::uint64_t reserved[6];
};
static_assert(sizeof(RedoRecord) == 64);
struct RedoWord {
    std::uint64_t offset;
    std::uint64_t value;
};

/// Old values of the words that one thread of a rewriting changes next; they follow. Each thread has places for two records, which it uses
/// in turn. At opening the newer one is undone unless it was applied.
struct RewriteRecord {
    std::uint64_t checksum;  ///< of the fields up to `applied` and of the words
    std::uint64_t count;
    std::uint64_t generation;  ///< that the words get
    std::uint64_t object;  ///< header of an object that this record rewrites only a part of; 0: none
    std::uint64_t done_before;  ///< of its pointers, before this record's words
    std::uint64_t done_after;
    std::uint64_t number;  ///< of the thread's records: the larger one is the newer
    std::uint64_t applied;  ///< the checksum, once the words are changed
};
static_assert(sizeof(RewriteRecord) == 64);
inline constexpr std::uint64_t rewriters_max = 8;
inline constexpr std::uint64_t rewrite_bytes = 64 * kib;
inline constexpr std::uint64_t rewrite_record_bytes = rewrite_bytes / 2;
inline constexpr std::uint64_t rewrite_words_max = (rewrite_record_bytes - sizeof(RewriteRecord)) / sizeof(RedoWord);

inline constexpr std::uint64_t granule_bytes = 64;
inline constexpr std::uint64_t zone_bytes = 256 * kib;
inline constexpr std::uint64_t zone_granules = zone_bytes / granule_bytes;
inline constexpr std::uint64_t small_granules_max = zone_granules / 2;

/// In front of each object, in one cache line [Breeze, thesis Figure 3.7].
struct ObjectHeader {
    std::uint64_t head;  ///< the block's state and size (block_head); 0: never used, and free
    std::uint64_t owner;  ///< the transaction that allocated it: log number in the upper byte. Not finished: the block is free
    std::uint64_t counts;  ///< type number in the upper half, reference count in the lower one
    std::uint64_t version;  ///< of all objects of a pool each has another one
    std::uint64_t size;  ///< of the object, in bytes
    std::uint64_t generation;  ///< at whose base its pointers are valid, in the lower half; checksum in the upper one
};
inline constexpr std::uint64_t object_header_bytes = sizeof(ObjectHeader);
static_assert(object_header_bytes == 48 && object_header_bytes < granule_bytes);

enum class BlockState : std::uint8_t { free = 1, allocated = 2 };

/// ObjectHeader::head: bits 0 to 39 granules, 40 to 43 state, 44 to 63 a check of both and of the place.
inline constexpr unsigned head_state_shift = 40;
inline constexpr unsigned head_check_shift = 44;
inline constexpr std::uint64_t head_granules_mask = (std::uint64_t{1} << head_state_shift) - 1;

inline constexpr unsigned owner_log_shift = 56;
inline constexpr unsigned type_shift = 32;
inline constexpr unsigned header_check_shift = 32;

/// Where the parts of an image lie: a pure function of its size.
struct Geometry {
    std::uint64_t log_bytes;
    std::uint64_t activation_bytes;  ///< of each log
    std::uint64_t redo_bytes;  ///< so many that the counts of the largest activation record fit in one
    std::uint64_t log_headers_offset;
    std::uint64_t logs_offset;
    std::uint64_t activations_offset;
    std::uint64_t redo_offset;
    std::uint64_t rewrites_offset;
    std::uint64_t zones_offset;
    std::uint64_t zone_count;

    [[nodiscard]] static constexpr Geometry of(std::uint64_t image_bytes) noexcept
    {
        constexpr std::uint64_t log_bytes_min = 16 * kib;
        constexpr std::uint64_t log_bytes_max = mib;
        Geometry made{};
        const std::uint64_t share = image_bytes / 16 / logs_max / page_bytes * page_bytes;
        made.log_bytes = share < log_bytes_min ? log_bytes_min : share > log_bytes_max ? log_bytes_max : share;
        made.activation_bytes = made.log_bytes / 2;
        made.redo_bytes = 2 * made.activation_bytes + page_bytes;
        made.log_headers_offset = types_offset + types_bytes_max;
        made.logs_offset = made.log_headers_offset + round_up(logs_max * sizeof(LogHeader), page_bytes);
        made.activations_offset = made.logs_offset + logs_max * made.log_bytes;
        made.redo_offset = made.activations_offset + logs_max * made.activation_bytes;
        made.rewrites_offset = made.redo_offset + made.redo_bytes;
        made.zones_offset = round_up(made.rewrites_offset + rewriters_max * rewrite_bytes, zone_bytes);
        made.zone_count = made.zones_offset < image_bytes ? (image_bytes - made.zones_offset) / zone_bytes : 0;
        return made;
    }
};
static_assert(Geometry::of(4 * mib).zone_count >= 4);

/// EngineFormat::segment_file_pages.
constexpr std::uint64_t segment_file_pages(std::uint64_t image_pages) noexcept { return image_pages; }
/// Changes that become durable together: `pages` JournalPages follow, then `lines` JournalLines, then zeroes up to a multiple of 4096.
/// Records of an epoch follow each other from the beginning of its half of the journal.
struct JournalRecord {
    std::uint64_t checksum;  ///< of the fields after it, and of the pages and lines; its seed is the pool's
    std::uint64_t epoch;
    std::uint64_t sequence;  ///< in the epoch, from 1
    std::uint64_t pages;
    std::uint64_t lines;
    std::uint64_t reserved[3];
};
static_assert(sizeof(JournalRecord) == 64);
struct JournalPage {
    std::uint64_t number;  ///< of the image's pages
    std::byte bytes[page_bytes];
};
static_assert(sizeof(JournalPage) == 4104);
struct JournalLine {
    std::uint64_t number;  ///< of the image's lines
    std::byte bytes[cache_line_bytes];
};
static_assert(sizeof(JournalLine) == 72);

constexpr std::uint64_t journal_record_bytes(std::uint64_t pages, std::uint64_t lines) noexcept
{
    return sizeof(JournalRecord) + pages * sizeof(JournalPage) + lines * sizeof(JournalLine);
}
/// Each of the two halves of the journal has room for a record with every page of the image.
constexpr std::uint64_t journal_half_pages(std::uint64_t image_pages) noexcept
{
    return round_up(journal_record_bytes(image_pages, 0), page_bytes) / page_bytes;
}
/// EngineFormat::segment_file_pages of a pool with a journal.
constexpr std::uint64_t journaled_segment_file_pages(std::uint64_t image_pages) noexcept
{
    return image_pages + 2 * journal_half_pages(image_pages);
}

}  // namespace stillpoint::breeze

#pragma once
// The commit record, at the head of an engine's area. Structures and constants only; docs/internals/format/pool.md describes it.
//
//   engine area (4 pages):  even epochs, copy 0 | copy 1 | odd epochs, copy 0 | copy 1
//
// A third copy, the witness, lies at byte 2048 of the page of the other pair that is next to the record's own: that of even epochs in
// "odd epochs, copy 0", that of odd ones in "even epochs, copy 1".

#include <array>
#include <cstddef>
#include <cstdint>

namespace stillpoint {

inline constexpr std::uint64_t commit_magic = 0x31544d4d43505453;  // "STPCMMT1"
inline constexpr std::uint64_t commit_area_pages = 4;

enum CommitFlags : std::uint32_t {
    commit_clean = 1,  ///< the last checkpoint of a run that ended normally
};

/// VER_d. A record is written twice, in neighbouring pages, and epochs alternate between two such
/// pairs: a torn write of one epoch's pair leaves the pair of the epoch before it, and one
/// damaged page is repaired from its twin.
struct CommitRecord {
    std::uint64_t magic;
    std::array<std::uint8_t, 16> pool_uuid;
    std::uint64_t epoch;  ///< every slot with an epoch up to this one is committed
    std::uint64_t generation;  ///< of the pool, when this was written
    std::uint64_t table_digest;  ///< the engine's: over all that the epoch relies on beside the pages
    std::uint64_t image_pages;  ///< size of the image at the capture
    std::uint64_t pages_in_epoch;
    std::uint64_t captured_unix_ns;  ///< wall clock at the capture: the age of lost work
    std::uint32_t flags;
    std::uint32_t parity;  ///< pair it was written to
    std::uint64_t checksum;  ///< over all bytes before
};
static_assert(sizeof(CommitRecord) == 88);
static_assert(offsetof(CommitRecord, epoch) == 24 && offsetof(CommitRecord, checksum) == 80);

inline constexpr std::uint64_t witness_magic = 0x31534e5457505453;  // "STPWTNS1"
inline constexpr std::uint64_t witness_offset = 2048;  ///< in its page

/// The third copy of a record, written with the other two and durable by the same sync. Where both of its pair are damaged, it tells an
/// epoch that was acknowledged from one whose commit was interrupted.
struct CommitWitness {
    std::uint64_t magic;
    CommitRecord record;
    std::uint64_t checksum;  ///< over all bytes before
};
static_assert(sizeof(CommitWitness) == 104);
static_assert(offsetof(CommitWitness, record) == 8 && offsetof(CommitWitness, checksum) == 96);

}  // namespace stillpoint

#pragma once
// The bytes of a pool of the layer undo. All offsets are from the file's first byte; all numbers little endian.
//
//   Header      one page
//   chunk table 8 bytes for each chunk: how many of its bytes are in use
//   slots       one for each thread: a log, and lists of free blocks
//   chunks      of 64 KiB: blocks, one after the other, each with a BlockHeader

#include <cstddef>
#include <cstdint>

namespace stillpoint::undo {

inline constexpr std::uint64_t magic = 0x316f646e75707353;  // "Sspundo1"
inline constexpr std::uint32_t format_version = 1;
inline constexpr std::uint64_t page_bytes = 4096;
inline constexpr std::uint64_t chunk_bytes = 64 * 1024;
inline constexpr unsigned size_classes = 160;

/// The part that never changes; checked when a pool is opened.
struct Geometry {
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t slots;
    std::uint64_t size_bytes;
    std::uint64_t window_base;
    std::uint64_t slot_bytes;
    std::uint64_t chunks;
    std::uint64_t table_offset;
    std::uint64_t slots_offset;
    std::uint64_t chunks_offset;
    std::uint64_t checksum;  ///< of all before it
};

/// The part that changes; `root` and `root_bytes` by logged stores, `run` at each opening. In a line of its own.
struct Variables {
    std::uint64_t run;   ///< even; locks that were made ready in another run are free
    std::uint64_t root;  ///< offset; 0: none
    std::uint64_t root_bytes;
};

struct Header {
    Geometry geometry;
    char unused[128 - sizeof(Geometry)];
    Variables variables;
};
static_assert(sizeof(Geometry) == 80 && offsetof(Header, variables) == 128 && sizeof(Header) <= page_bytes);

/// Begins a slot; the log's entries follow. `sequence` is the number of the slot's FASEs that are over: raising it ends one,
/// and makes every entry of the log invalid at once.
struct SlotHeader {
    std::uint64_t sequence;
    std::uint64_t unused[7];
    std::uint64_t free_blocks[size_classes];  ///< offset of the first free block of each class
};
static_assert(sizeof(SlotHeader) % 64 == 0);

/// Begins a log entry. The old bytes follow, padded to a multiple of 8.
struct EntryHeader {
    std::uint64_t checksum;  ///< of the rest and the old bytes; its seed binds it to slot, FASE and index
    std::uint64_t offset;    ///< where the old bytes were; of a jump: where the log goes on
    std::uint32_t size;      ///< jump_mark: the log continues in a chunk
    std::uint32_t index;     ///< in the FASE, from 0
};
static_assert(sizeof(EntryHeader) == 24);
inline constexpr std::uint32_t jump_mark = 0xffffffff;
inline constexpr std::uint32_t entry_bytes_max = 8192;  ///< of old bytes; longer ranges take several entries

/// In front of each block.
struct BlockHeader {
    std::uint32_t mark;
    std::uint32_t size_class;
    std::uint64_t next;  ///< of a free block: offset of the next one's header. Not in the block: there the program writes unlogged
};
inline constexpr std::uint32_t block_mark = 0x6b636c42;  // "Blck"
static_assert(sizeof(BlockHeader) == 16);

/// Class c holds blocks of class_bytes(c) with their header: 32, 48, ... 128, then four to each doubling.
constexpr std::uint64_t class_bytes(unsigned size_class)
{
    if (size_class < 7) {
        return 32 + std::uint64_t{size_class} * 16;
    }
    const unsigned above = size_class - 7;
    return (std::uint64_t{5} + above % 4) << (5 + above / 4);
}
static_assert(class_bytes(6) == 128 && class_bytes(7) == 160 && class_bytes(10) == 256 && class_bytes(11) == 320);

/// The smallest class of at least `bytes`; size_classes where there is none.
constexpr unsigned class_for(std::uint64_t bytes)
{
    unsigned size_class = 0;
    while (size_class < size_classes && class_bytes(size_class) < bytes) {
        ++size_class;
    }
    return size_class;
}

}  // namespace stillpoint::undo

#pragma once
// Bytes of the image's own tables: structures and constants only. docs/internals/format/pool.md is the
// description for people.
//
// They lie in durable memory at fixed offsets from the pool's base address. The engine makes
// them failure-atomic and checksums their pages; the checksum in the header covers only what never
// changes, so that ordinary stores into the tables need no upkeep.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/units.hpp"

namespace stillpoint::layout {

inline constexpr std::uint8_t image_magic[8] = {0x93, 'S', 'T', 'I', 'M', 'A', 'G', 'E'};
inline constexpr std::uint32_t image_version = 1;
inline constexpr std::uint64_t image_checksum_seed = 0x5354494d41474548;
/// Seed of the hash that the handle directory stores with each name: part of the format.
inline constexpr std::uint64_t directory_hash_seed = 0x5354444952454354;
inline constexpr std::size_t durable_globals_max = 32;

/// How the image's tables are kept failure-atomic, which is the engine's choice.
enum class TableFormat : std::uint32_t {
    plain = 0,   ///< as all durable memory is: pages of one moment
    logged = 1,  ///< the heap's tables are logged words; those in front of the heap have two copies after them
};

/// One module (program or shared library) whose SP_PERSISTENT section is kept in the image. The
/// runtime fills it. Empty: name[0] is 0.
struct DurableGlobals {
    char name[48];              ///< of the module, NUL-terminated, rest zero
    std::uint64_t layout_hash;  ///< of the section; another value: the program was changed
    std::uint64_t image_offset; ///< of the durable copy, in bytes from the image's base
    std::uint64_t size;         ///< bytes
};
static_assert(sizeof(DurableGlobals) == 72);
static_assert(offsetof(DurableGlobals, name) == 0);
static_assert(offsetof(DurableGlobals, layout_hash) == 48);
static_assert(offsetof(DurableGlobals, image_offset) == 56);
static_assert(offsetof(DurableGlobals, size) == 64);

/// Which data these are: a name and a number of the program's own. None stated: all zero.
struct DataLayout {
    char name[48];         ///< NUL-terminated, rest zero
    std::uint64_t number;
    std::uint64_t types_offset;  ///< of the TypesBlock, in bytes from the image's base; 0: none
};
static_assert(sizeof(DataLayout) == 64);
static_assert(offsetof(DataLayout, name) == 0);
static_assert(offsetof(DataLayout, number) == 48);
static_assert(offsetof(DataLayout, types_offset) == 56);

inline constexpr std::uint64_t types_checksum_seed = 0x5354545950455331;

/// A block of the heap: descriptions of the types of the data. The text follows.
struct TypesBlock {
    std::uint64_t text_bytes;
    std::uint64_t layout_number;  ///< of the data that they describe
    std::uint64_t checksum;       ///< of the bytes before it, and of the text
};
static_assert(sizeof(TypesBlock) == 24);

/// The image's first page.
struct ImageHeader {
    std::uint8_t magic[8];
    std::uint32_t version;
    std::uint32_t header_bytes;           ///< 4096
    std::uint64_t checksum;               ///< of bytes 0 to 15 and 24 to 127
    std::uint64_t base_address;           ///< where the addresses in the image are valid
    std::uint64_t image_bytes_max;
    std::uint64_t directory_offset;       ///< offsets are in bytes from the image's base
    std::uint64_t directory_capacity;     ///< capacities are in entries
    std::uint64_t sync_objects_offset;
    std::uint64_t sync_objects_capacity;
    std::uint64_t heap_offset;
    std::uint32_t directory_entry_bytes;  ///< 128
    std::uint32_t sync_object_bytes;      ///< 16
    std::uint32_t table_format;           ///< TableFormat
    std::uint32_t reserved_word;          ///< zero
    std::uint64_t span_table_offset;      ///< of a heap whose maximum was raised; 0: its tables lie in front of its spans
    std::uint8_t reserved_fixed[24];      ///< zero
    // The checksum does not cover the bytes from here on.
    DataLayout data_layout;
    std::uint8_t reserved[1600];          ///< zero
    DurableGlobals durable_globals[durable_globals_max];
};
static_assert(std::is_trivially_copyable_v<ImageHeader> && std::is_standard_layout_v<ImageHeader>);
static_assert(sizeof(ImageHeader) == page_bytes);
static_assert(offsetof(ImageHeader, magic) == 0);
static_assert(offsetof(ImageHeader, version) == 8);
static_assert(offsetof(ImageHeader, header_bytes) == 12);
static_assert(offsetof(ImageHeader, checksum) == 16);
static_assert(offsetof(ImageHeader, base_address) == 24);
static_assert(offsetof(ImageHeader, image_bytes_max) == 32);
static_assert(offsetof(ImageHeader, directory_offset) == 40);
static_assert(offsetof(ImageHeader, directory_capacity) == 48);
static_assert(offsetof(ImageHeader, sync_objects_offset) == 56);
static_assert(offsetof(ImageHeader, sync_objects_capacity) == 64);
static_assert(offsetof(ImageHeader, heap_offset) == 72);
static_assert(offsetof(ImageHeader, directory_entry_bytes) == 80);
static_assert(offsetof(ImageHeader, sync_object_bytes) == 84);
static_assert(offsetof(ImageHeader, table_format) == 88);
static_assert(offsetof(ImageHeader, reserved_word) == 92);
static_assert(offsetof(ImageHeader, span_table_offset) == 96);
static_assert(offsetof(ImageHeader, reserved_fixed) == 104);
static_assert(offsetof(ImageHeader, data_layout) == 128);
static_assert(offsetof(ImageHeader, reserved) == 192);
static_assert(offsetof(ImageHeader, durable_globals) == 1792);

/// One synchronisation object in durable memory that was in use when the epoch was captured; recovery makes it
/// fresh. Its content is the runtime's; the pool reserves the zeroed area.
struct SyncObjectRecord {
    std::uint64_t address;  ///< 0: unused
    std::uint64_t kind;     ///< SyncObjectKind; from bit 32 on its fingerprint
};
static_assert(sizeof(SyncObjectRecord) == 16);
static_assert(offsetof(SyncObjectRecord, address) == 0);
static_assert(offsetof(SyncObjectRecord, kind) == 8);

}  // namespace stillpoint::layout

#pragma once
// Bytes of one entry of the handle directory: structure only. docs/internals/format/pool.md describes it.

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace stillpoint::layout {

/// The hot fields and the first bytes of the name share a cache line.
struct DirectoryRecord {
    std::uint64_t hash;         ///< of the name; 0: the entry is free, and all its bytes are zero
    std::uint64_t address;      ///< of the object
    std::uint64_t size;         ///< of the object, bytes
    char handle[80];            ///< NUL-terminated, rest zero
    std::uint8_t reserved[24];  ///< zero
};
static_assert(std::is_trivially_copyable_v<DirectoryRecord>);
static_assert(sizeof(DirectoryRecord) == 128);
static_assert(offsetof(DirectoryRecord, hash) == 0);
static_assert(offsetof(DirectoryRecord, address) == 8);
static_assert(offsetof(DirectoryRecord, size) == 16);
static_assert(offsetof(DirectoryRecord, handle) == 24);
static_assert(offsetof(DirectoryRecord, reserved) == 104);

}  // namespace stillpoint::layout

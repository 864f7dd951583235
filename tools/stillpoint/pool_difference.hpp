#pragma once
// The difference of two pools: names, blocks of the heap, bytes, and fields where the program's types are known.

#include <cstdint>
#include <string>
#include <vector>

#include "pool_image.hpp"
#include "typed_objects.hpp"
#include "typed_roots.hpp"

namespace stillpoint::tool {

enum class Change : std::uint8_t { added, removed, changed };

struct ByteRange {
    std::uint64_t offset;
    std::uint64_t bytes;
};

struct ObjectChange {
    Change change;
    std::string kind;  ///< "handle", "global" or "block"; "root" or "object" where the engine knows the objects
    std::string name;  ///< of a block: a path that leads to it; empty: none is known
    std::string type;  ///< empty: not known
    std::uint64_t address;  ///< of an object: its place in the image, as `dump` has it
    std::uint64_t size_bytes;
    std::uint64_t changed_bytes = 0;
    std::string note;  ///< another place, or another size
    std::vector<ByteRange> ranges;
    std::uint64_t ranges_left_out = 0;
    std::vector<FieldChange> fields;
};

struct HeapFigures {
    std::uint64_t blocks = 0;
    std::uint64_t bytes = 0;
};

struct PoolDifference {
    HeapFigures before;
    HeapFigures after;
    std::vector<ObjectChange> roots;
    std::vector<ObjectChange> blocks;  ///< without those of roots; the first so many
    std::uint64_t blocks_added = 0;
    std::uint64_t blocks_removed = 0;
    std::uint64_t blocks_changed = 0;
    bool of_objects = false;  ///< difference_of_objects()
    bool other_addresses = false;  ///< of the pools: pointers differ for that alone

    [[nodiscard]] bool is_same() const noexcept { return roots.empty() && blocks_added == 0 && blocks_removed == 0 && blocks_changed == 0; }
};

/// `limit`: so many blocks, and so many ranges and fields of each object. Errors: as typed_roots().
[[nodiscard]] tl::expected<PoolDifference, ProgramError> difference_of(const PoolImage& before, const PoolImage& after,
                                                                       ProgramTypes* program, const HandleTypes& types, std::size_t limit);

}  // namespace stillpoint::tool

#pragma once
// Objects of a closed pool as `stillpoint dump` shows them, where an engine knows the program's types.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace stillpoint {

struct ObjectRequest {
    std::uint64_t root = 0;         ///< the first object: the byte of the image where its header lies; 0: the pool's root
    std::uint64_t objects_max = 0;  ///< so many at most
    std::uint64_t depth_max = 0;    ///< so many pointers from the root at most
};

enum class PointerTarget : std::uint8_t {
    none,     ///< the pointer is null
    object,   ///< it leads to an object, or into one
    freed,    ///< a weak pointer, whose object is gone
    unknown,  ///< it leads to no object: damage
};

struct ShownPointer {
    std::string_view field;  ///< as the program writes it
    std::uint64_t offset;    ///< of the pointer in the object
    bool is_weak;
    PointerTarget target;
    std::uint64_t object;    ///< that it leads to, by ShownObject::place
    std::uint64_t inside;    ///< bytes from that object's first one to where it leads
};

/// Data that the type describes.
struct ShownField {
    std::string_view field;  ///< as the program writes it
    std::uint64_t offset;    ///< of its first byte in the object
    std::uint64_t bytes;
    std::string_view value;  ///< as the program would write it; long ones are cut
};

/// Valid during the call that shows it.
struct ShownObject {
    std::uint64_t place;     ///< the byte of the image where its header lies: its name in this pool
    std::uint64_t identity;  ///< no other object of the pool has had it, or has it in a copy that was made meanwhile
    std::uint64_t depth;     ///< pointers from the root to it, by the shortest way
    std::string_view type;
    std::uint64_t element_bytes;  ///< a larger object is an array; one with a tail is not
    std::uint32_t references;
    std::span<const std::byte> bytes;
    std::span<const ShownPointer> pointers;  ///< in the order of their offsets
    std::span<const ShownField> fields;      ///< in the order of their offsets; the first 4096
    bool is_complete;  ///< bytes that belong to no pointer and to no field are padding
};

struct ObjectFigures {
    std::uint64_t shown = 0;
    bool has_more = false;  ///< a limit left objects out
    bool has_root = false;
};

}  // namespace stillpoint

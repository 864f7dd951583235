#pragma once
// Values of a program's types as they lie in the image of a pool: a tree to print. Reads nothing outside the image.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pool_image.hpp"
#include "program_types.hpp"

namespace stillpoint::tool {

/// Where a pointer leads.
enum class PointsTo : std::uint8_t {
    no_pointer,
    null,
    shown,     ///< into the pool; the object is `pointee`
    shown_elsewhere,  ///< at the path in `note`
    cycle,     ///< to an object that this one is part of, by pointers; its path is in `note`
    too_deep,  ///< into the pool; --depth ends here
    bytes,     ///< into the pool, to what has no type
    freed,     ///< into the pool's heap, but into no live block
    too_small,  ///< into a live block, in which an object of the type has no room
    outside,   ///< outside the pool
};

[[nodiscard]] std::string_view word_of(PointsTo target);

struct ValueNode {
    std::string name;
    std::string type;
    std::uint64_t address = 0;
    std::uint64_t size_bytes = 0;
    std::string text;  ///< the value, of scalars and pointers; of an enum of Rust its variant
    std::string note;
    std::vector<ValueNode> members;  ///< fields, or elements
    std::uint64_t left_out = 0;      ///< elements that the limit leaves out
    bool is_array = false;
    PointsTo points_to = PointsTo::no_pointer;
    std::uint64_t target = 0;        ///< of a pointer
    LiveBlock block;                 ///< that it leads into
    std::vector<ValueNode> pointee;  ///< one, if it is shown
};

struct ValueLimits {
    std::uint64_t depth = 3;      ///< pointers
    std::uint64_t elements = 20;  ///< of an array
    std::uint64_t values = 100'000;
};

class ValueReader {
public:
    ValueReader(const PoolImage& image, ProgramTypes& program, const ValueLimits& limits) noexcept
        : image_(image), program_(program), limits_(limits)
    {
    }

    /// An object of the type, of which so many bytes exist.
    [[nodiscard]] ValueNode read(const std::string& name, TypeId type, std::uint64_t address, std::uint64_t bytes);
    /// A limit has left something out.
    [[nodiscard]] bool has_more() const noexcept { return has_more_; }

private:
    struct Place {
        std::uint64_t address;
        std::uint64_t end;  ///< of the bytes that belong to the object
    };
    struct Path {
        std::string text;
        unsigned nesting;  ///< records and arrays in each other
        std::uint64_t pointers;
    };

    ValueNode read_value(std::string name, std::string type_name, TypeId type, Place place, const Path& path);
    void read_record(ValueNode& node, const ProgramType& type, Place place, const Path& path);
    void read_variant(ValueNode& node, const ProgramType& type, Place place, const Path& path);
    void read_array(ValueNode& node, const ProgramType& type, Place place, const Path& path);
    void read_pointer(ValueNode& node, const ProgramType& type, const Path& path);
    /// False: the type is not one that is known by its name, or has not the members of one.
    bool read_known(ValueNode& node, TypeId id, Place place, const Path& path);
    bool read_logged(ValueNode& node, TypeId id, Place place, const Path& path);
    bool read_string(ValueNode& node, TypeId id, Place place);
    bool read_vector(ValueNode& node, TypeId id, const Path& path);
    bool read_tree(ValueNode& node, TypeId id, const Path& path);
    bool read_hash(ValueNode& node, TypeId id, const Path& path);
    bool read_shards(ValueNode& node, TypeId id, const Path& path);
    void add_node(ValueNode& node, TypeId value, std::uint64_t address, const Path& path);
    void read_elements(ValueNode& node, TypeId element, std::uint64_t count, Place place, const Path& path);
    [[nodiscard]] std::uint64_t number_at(std::uint64_t address, std::uint64_t bytes) const;

    const PoolImage& image_;
    ProgramTypes& program_;
    ValueLimits limits_;
    std::uint64_t values_ = 0;
    bool has_more_ = false;
    std::map<std::pair<std::uint64_t, TypeId>, std::string> shown_;  ///< paths of objects that pointers led to
    std::vector<std::pair<std::uint64_t, TypeId>> open_;             ///< those that the current one is part of
};

/// The value of a number, an enumeration, a character or the like: its bytes, or bits of them.
[[nodiscard]] std::string text_of_scalar(const ProgramType& type, std::span<const std::byte> bytes, std::uint32_t bit_offset,
                                         std::uint32_t bits);
/// Characters in quotes, to the first NUL; the rest escaped.
[[nodiscard]] std::string text_of_characters(std::span<const std::byte> bytes, std::uint64_t characters_max);

}  // namespace stillpoint::tool

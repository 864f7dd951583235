#pragma once
// The objects that a program can reach from its roots by pointers, with their types.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "typed_roots.hpp"

namespace stillpoint::tool {

struct TypedObject {
    TypeId type;
    std::uint64_t bytes;  ///< of the type
    std::string path;     ///< a way to it: "bank.first.next"
};

/// By address; of an object that two types claim, the type that is found first. Ends at `objects_max` objects.
[[nodiscard]] std::map<std::uint64_t, TypedObject> reach_objects(const PoolImage& image, ProgramTypes& program,
                                                                 const std::vector<TypedRoot>& roots, std::size_t objects_max);

/// A field that differs.
struct FieldChange {
    std::string field;  ///< empty: the object has no fields
    std::string type;
    std::uint64_t offset;
    std::string before;
    std::string after;
};

/// The fields of two objects of a type that differ, the first `changes_max` of them.
[[nodiscard]] std::vector<FieldChange> changed_fields(ProgramTypes& program, TypeId type, std::span<const std::byte> before,
                                                      std::span<const std::byte> after, std::size_t changes_max);

}  // namespace stillpoint::tool

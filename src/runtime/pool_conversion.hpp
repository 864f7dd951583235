#pragma once
// Copying the objects of a closed pool into a new one for a program whose types have changed, for `stillpoint convert`, where an engine
// knows the program's types.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/pool_compaction.hpp"

namespace stillpoint {

struct ConversionRequest {
    CompactionRequest made;
    std::string_view types;              ///< the section of the new program's file that describes its types
    std::string_view program;            ///< its path, for messages
    std::span<const std::string> drops;  ///< fields whose data may be lost: "Type.field"
    bool is_trial = false;               ///< no pool is made
};

struct TypeDifference {
    std::string text;
    bool is_refused;  ///< data would be lost, or cannot be carried over
};

struct ConvertedType {
    std::string name;
    std::uint64_t objects = 0;
    std::uint64_t element_bytes_before = 0;
    std::uint64_t element_bytes_after = 0;
    bool is_described = false;  ///< by the program; else its objects stay as they are
    std::vector<TypeDifference> differences;
};

struct ConversionReport {
    CompactionFigures figures;
    std::vector<ConvertedType> types;   ///< of which the pool has objects
    std::vector<std::string> problems;  ///< objects whose values or pointers have no place in the new types; the first 100
    std::uint64_t problem_count = 0;

    /// No pool was made.
    [[nodiscard]] bool is_refused() const noexcept
    {
        for (const ConvertedType& type : types) {
            for (const TypeDifference& difference : type.differences) {
                if (difference.is_refused) {
                    return true;
                }
            }
        }
        return problem_count != 0;
    }
};

}  // namespace stillpoint

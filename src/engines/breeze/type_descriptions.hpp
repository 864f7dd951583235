#pragma once
// Type records: made of what a program describes, and read from a pool. Everything in them is validated, so code that uses a Type need not.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "engines/breeze/breeze_layout.hpp"
#include "engines/breeze/types.hpp"
#include "stillpoint/typed_fields.h"

namespace stillpoint::breeze {

inline constexpr std::size_t fields_max = 1024;  ///< of one type

/// nullptr: no type has this number.
using FindType = std::function<std::shared_ptr<const Type>(std::uint32_t id)>;

/// The number of the type of that name.
[[nodiscard]] std::uint32_t type_id_of(std::string_view name) noexcept;
/// The record with its fields is whole, and its checksum fits.
[[nodiscard]] bool is_whole_record(std::span<const std::byte> record) noexcept;
/// The type that a record describes. Errors: invalid_argument.
[[nodiscard]] Result<std::shared_ptr<Type>> type_of_record(std::vector<std::byte> record, const FindType& find);

/// A type as a program describes it, with what it says to a conversion.
struct DescribedType {
    struct Renamed {
        std::string now;
        std::string before;
    };
    struct Default {
        std::string field;
        std::uint64_t value;
    };
    std::shared_ptr<const Type> type;
    std::vector<Renamed> renamed;
    std::vector<Default> defaults;
};

/// The types of a list of entries, each of which begins with one of kind NVM_FIELD_TYPE; nested ones come before. `find` knows further
/// types. Errors: invalid_argument.
[[nodiscard]] Result<std::vector<DescribedType>> types_of_entries(std::span<const nvm_field> entries, const FindType& find);

/// The types in the section of a program's file (NVM_TYPES_SECTION); of several that agree, the most complete one. Errors:
/// invalid_argument, object_type (two of one name do not agree).
[[nodiscard]] Result<std::vector<DescribedType>> types_of_section(std::string_view section);

}  // namespace stillpoint::breeze

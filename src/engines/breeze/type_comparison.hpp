#pragma once
// Whether two descriptions of a type agree: both must have the same pointers, and what both say of other fields must be alike. A
// description that is not complete says nothing of the rest.

#include <cstdint>
#include <string>
#include <string_view>

#include "engines/breeze/types.hpp"

namespace stillpoint::breeze {

/// Parts of the encoding of a bit field.
[[nodiscard]] constexpr std::uint32_t first_bit_of(std::uint32_t encoding) noexcept { return encoding >> 8 & 0xff; }
[[nodiscard]] constexpr std::uint32_t bits_of(std::uint32_t encoding) noexcept { return encoding >> 16 & 0xff; }

/// The field's type, as a C programmer would say it: "uint32_t[4]".
[[nodiscard]] std::string text_of_field_type(const Field& field);

/// The first difference; empty: they agree. `there` and `here` name the sides of the first and the second type in the text.
[[nodiscard]] std::string difference(const Type& first, const Type& second, std::string_view there, std::string_view here);

}  // namespace stillpoint::breeze

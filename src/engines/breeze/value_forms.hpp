#pragma once
// Values of data fields: read and written by their encoding, and converted from one into another.

#include <cstddef>
#include <cstdint>
#include <string>

#include "engines/breeze/types.hpp"

namespace stillpoint::breeze {

__extension__ using WideInteger = __int128;  ///< holds every integer of at most 8 bytes, signed or not

enum class ValueChange : std::uint8_t {
    same,      ///< the bytes are copied
    widened,   ///< every old value has a place in the new form
    narrowed,  ///< some have none: each is checked
    refused,   ///< the forms have nothing in common
};

/// How a value of one field becomes one of another; both are of kind data or tail.
[[nodiscard]] ValueChange change_of_values(const Field& from, const Field& to) noexcept;

/// The value is an integer of at most 8 bytes: whole bytes, or bits.
[[nodiscard]] bool is_integer(const Field& field) noexcept;
[[nodiscard]] WideInteger read_integer(const Field& field, const std::byte* place) noexcept;
/// False: it does not fit, and nothing is written.
[[nodiscard]] bool write_integer(const Field& field, std::byte* place, WideInteger value) noexcept;

/// Converts one value. False: it does not fit.
[[nodiscard]] bool convert_value(const Field& from, const std::byte* old_place, const Field& to, std::byte* new_place) noexcept;
/// As a C programmer would write it; bytes in hexadecimal.
[[nodiscard]] std::string text_of_value(const Field& field, const std::byte* place);

}  // namespace stillpoint::breeze

#include "engines/breeze/value_forms.hpp"

#include <cmath>
#include <cstring>

#include "core/formatted.hpp"
#include "engines/breeze/type_comparison.hpp"
#include "stillpoint/typed_fields.h"

namespace stillpoint::breeze {

namespace {

__extension__ using WideUnsigned = unsigned __int128;

std::uint32_t form_of(const Field& field) noexcept { return field.encoding & 0xff; }
bool is_bits(const Field& field) noexcept { return form_of(field) == NVM_DATA_BITS_SIGNED || form_of(field) == NVM_DATA_BITS_UNSIGNED; }

bool is_signed(const Field& field) noexcept
{
    const std::uint32_t form = form_of(field);
    return form == NVM_DATA_SIGNED || form == NVM_DATA_ENUM_SIGNED || form == NVM_DATA_BITS_SIGNED || form == NVM_DATA_CHARACTER;
}

unsigned width_of(const Field& field) noexcept
{
    return is_bits(field) ? bits_of(field.encoding) : form_of(field) == NVM_DATA_BOOL ? 1 : static_cast<unsigned>(field.element_bytes * 8);
}

WideInteger least_of(const Field& field) noexcept { return is_signed(field) ? -(WideInteger{1} << (width_of(field) - 1)) : 0; }
WideInteger most_of(const Field& field) noexcept { return (WideInteger{1} << (width_of(field) - (is_signed(field) ? 1 : 0))) - 1; }

WideUnsigned load(const Field& field, const std::byte* place) noexcept
{
    WideUnsigned word = 0;
    std::memcpy(&word, place, field.element_bytes);
    return word;
}

bool is_float(const Field& field) noexcept
{
    return form_of(field) == NVM_DATA_FLOAT && (field.element_bytes == sizeof(float) || field.element_bytes == sizeof(double));
}

double read_float(const Field& field, const std::byte* place) noexcept
{
    float single = 0;
    double value = 0;
    if (field.element_bytes == sizeof value) {
        std::memcpy(&value, place, sizeof value);
        return value;
    }
    std::memcpy(&single, place, sizeof single);
    return single;
}

}  // namespace

bool is_integer(const Field& field) noexcept
{
    switch (form_of(field)) {
    case NVM_DATA_SIGNED:
    case NVM_DATA_UNSIGNED:
    case NVM_DATA_BOOL:
    case NVM_DATA_ENUM_SIGNED:
    case NVM_DATA_ENUM_UNSIGNED: return field.element_bytes <= sizeof(std::uint64_t);
    case NVM_DATA_CHARACTER:
    case NVM_DATA_BITS_SIGNED:
    case NVM_DATA_BITS_UNSIGNED: return true;
    default: return false;
    }
}

ValueChange change_of_values(const Field& from, const Field& to) noexcept
{
    const bool same_size = from.element_bytes == to.element_bytes;
    if (from.encoding == to.encoding && same_size) {
        return ValueChange::same;
    }
    if (is_integer(from) && is_integer(to)) {
        const bool one_is_text = form_of(from) == NVM_DATA_CHARACTER || form_of(to) == NVM_DATA_CHARACTER;
        const bool is_bool = form_of(from) == NVM_DATA_BOOL || form_of(to) == NVM_DATA_BOOL;
        if (same_size && one_is_text && !is_bool && !is_bits(from) && !is_bits(to)) {
            return ValueChange::same;
        }
        return least_of(to) <= least_of(from) && most_of(from) <= most_of(to) ? ValueChange::widened : ValueChange::narrowed;
    }
    if (is_float(from) && is_float(to)) {
        return from.element_bytes < to.element_bytes ? ValueChange::widened : ValueChange::narrowed;
    }
    const bool becomes_bytes = same_size && (form_of(from) == NVM_DATA_BYTES || form_of(to) == NVM_DATA_BYTES);
    return becomes_bytes && !is_bits(from) && !is_bits(to) ? ValueChange::same : ValueChange::refused;
}

WideInteger read_integer(const Field& field, const std::byte* place) noexcept
{
    const unsigned width = is_bits(field) ? bits_of(field.encoding) : static_cast<unsigned>(field.element_bytes * 8);
    const WideUnsigned word = load(field, place) >> (is_bits(field) ? first_bit_of(field.encoding) : 0);
    const WideUnsigned value = word & ((WideUnsigned{1} << width) - 1);
    const bool is_negative = is_signed(field) && (value >> (width - 1) & 1) != 0;
    return is_negative ? static_cast<WideInteger>(value) - (WideInteger{1} << width) : static_cast<WideInteger>(value);
}

bool write_integer(const Field& field, std::byte* place, WideInteger value) noexcept
{
    if (value < least_of(field) || value > most_of(field)) {
        return false;
    }
    WideUnsigned word = static_cast<WideUnsigned>(value);
    if (is_bits(field)) {
        const unsigned first = first_bit_of(field.encoding);
        const WideUnsigned mask = ((WideUnsigned{1} << bits_of(field.encoding)) - 1) << first;
        word = (load(field, place) & ~mask) | (word << first & mask);
    }
    std::memcpy(place, &word, field.element_bytes);
    return true;
}

bool convert_value(const Field& from, const std::byte* old_place, const Field& to, std::byte* new_place) noexcept
{
    if (is_bits(from) || change_of_values(from, to) != ValueChange::same) {
        if (is_integer(from)) {
            return write_integer(to, new_place, read_integer(from, old_place));
        }
        const double value = read_float(from, old_place);
        if (to.element_bytes == sizeof value) {
            std::memcpy(new_place, &value, sizeof value);
            return true;
        }
        const auto single = static_cast<float>(value);
        std::memcpy(new_place, &single, sizeof single);
        return std::isnan(value) || static_cast<double>(single) == value;
    }
    std::memcpy(new_place, old_place, to.element_bytes);
    return true;
}

std::string text_of_value(const Field& field, const std::byte* place)
{
    if (form_of(field) == NVM_DATA_BOOL && (*place == std::byte{0} || *place == std::byte{1})) {
        return *place == std::byte{0} ? "false" : "true";
    }
    if (is_integer(field)) {
        const WideInteger value = read_integer(field, place);
        return value < 0 ? formatted("{}", static_cast<std::int64_t>(value)) : formatted("{}", static_cast<std::uint64_t>(value));
    }
    if (is_float(field)) {
        return field.element_bytes == sizeof(float) ? formatted("{}", static_cast<float>(read_float(field, place)))
                                                    : formatted("{}", read_float(field, place));
    }
    std::string text;
    for (std::uint64_t i = 0; i < field.element_bytes && i < 64; ++i) {
        text += formatted("{:02x}", std::to_integer<unsigned>(place[i]));
    }
    return text;
}

}  // namespace stillpoint::breeze

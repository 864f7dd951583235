// The values of scalar types in words.

#include <algorithm>
#include <charconv>
#include <cstring>

#include "output.hpp"
#include "value_tree.hpp"

namespace stillpoint::tool {

namespace {

template <class Float>
std::string text_of_float(std::span<const std::byte> bytes)
{
    Float value{};
    std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
    char text[128];
    if constexpr (sizeof(Float) > sizeof(double)) {
        return {text, static_cast<std::size_t>(std::snprintf(text, sizeof text, "%.18Lg", value))};
    } else {
        return {text, std::to_chars(text, text + sizeof text, value).ptr};  // The shortest that reads back alike.
    }
}

std::string text_of_bytes(std::span<const std::byte> bytes)
{
    constexpr std::size_t bytes_max = 64;
    std::string text;
    for (const std::byte one : bytes.first(std::min(bytes.size(), bytes_max))) {
        text += text_of("{:02x}", std::to_integer<unsigned>(one));
    }
    return "0x" + text + (bytes.size() > bytes_max ? "..." : "");
}

std::string escaped(unsigned char character, char quote)
{
    if (character == static_cast<unsigned char>(quote) || character == '\\') {
        return {'\\', static_cast<char>(character)};
    }
    if (character >= 0x20 && character < 0x7f) {
        return {static_cast<char>(character)};
    }
    switch (character) {
    case '\n': return "\\n";
    case '\t': return "\\t";
    case '\r': return "\\r";
    case '\0': return "\\0";
    default: return text_of("\\x{:02x}", character);
    }
}

/// The name of the value, or the names of its bits.
std::string text_of_enumerator(const ProgramType& type, std::uint64_t value, unsigned bits)
{
    const std::uint64_t mask = bits >= 64 ? UINT64_MAX : (std::uint64_t{1} << bits) - 1;
    std::string flags;
    std::uint64_t rest = value & mask;
    for (const auto& [number, name] : type.enumerators) {
        const std::uint64_t one = static_cast<std::uint64_t>(number) & mask;
        if (one == (value & mask)) {
            return name;
        }
        if (one != 0 && (one & (one - 1)) == 0 && (rest & one) != 0) {
            flags += (flags.empty() ? "" : " | ") + name;
            rest &= ~one;
        }
    }
    return rest == 0 && !flags.empty() ? flags : text_of("{} (no enumerator)", value & mask);
}

}  // namespace

std::string text_of_characters(std::span<const std::byte> bytes, std::uint64_t characters_max)
{
    std::string text = "\"";
    std::uint64_t count = 0;
    for (const std::byte one : bytes) {
        if (one == std::byte{0}) {
            break;
        }
        if (count++ == characters_max) {
            return text + "\"...";
        }
        text += escaped(std::to_integer<unsigned char>(one), '"');
    }
    return text + '"';
}

std::string text_of_scalar(const ProgramType& type, std::span<const std::byte> bytes, std::uint32_t bit_offset, std::uint32_t bits)
{
    std::uint64_t low = 0;
    std::memcpy(&low, bytes.data(), std::min(bytes.size(), sizeof low));
    std::uint64_t value = low >> (bit_offset & 63);
    if (bit_offset != 0 && bytes.size() > sizeof low) {
        value |= std::to_integer<std::uint64_t>(bytes[sizeof low]) << (64 - bit_offset);
    }
    const auto width = static_cast<unsigned>(bits != 0 ? bits : std::min<std::size_t>(bytes.size(), sizeof low) * 8);
    if (width < 64) {
        value &= (std::uint64_t{1} << width) - 1;
    }
    const bool is_negative = width != 0 && (value >> (width - 1) & 1) != 0;
    const std::uint64_t extended = is_negative && width < 64 ? value | ~((std::uint64_t{1} << width) - 1) : value;
    switch (type.kind) {
    case TypeKind::boolean: return value == 0 ? "false" : value == 1 ? "true" : text_of("{} (no bool)", value);
    case TypeKind::signed_number:
    case TypeKind::unsigned_number:
        if (bytes.size() > sizeof low && bits == 0) {
            return text_of_bytes(bytes);
        }
        return type.kind == TypeKind::signed_number ? text_of("{}", static_cast<std::int64_t>(extended)) : text_of("{}", value);
    case TypeKind::character:
        return text_of("{} '{}'",
                       type.name.starts_with("unsigned") ? static_cast<std::int64_t>(value) : static_cast<std::int64_t>(extended),
                       escaped(static_cast<unsigned char>(value), '\''));
    case TypeKind::enumeration: return text_of_enumerator(type, value, width);
    case TypeKind::floating:
        return bytes.size() == sizeof(float)         ? text_of_float<float>(bytes)
               : bytes.size() == sizeof(double)      ? text_of_float<double>(bytes)
               : bytes.size() == sizeof(long double) ? text_of_float<long double>(bytes)
                                                     : text_of_bytes(bytes);
    default: return text_of_bytes(bytes);
    }
}

}  // namespace stillpoint::tool

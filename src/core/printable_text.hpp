#pragma once
// Text from outside (a pool, another process, a path) on its way to a terminal: control characters there are commands,
// so they are shown as \xNN instead. UTF-8 passes as it is.

#include <cstddef>
#include <span>
#include <string_view>

namespace stillpoint {

namespace text {

/// Bytes of the control character that `rest` begins with, 0 where it begins with none. C1 controls are two bytes in UTF-8.
[[nodiscard]] constexpr std::size_t control_bytes(std::string_view rest) noexcept
{
    const auto first = static_cast<unsigned char>(rest.front());
    if (first < 0x20 || first == 0x7f) {
        return 1;
    }
    const bool two = first == 0xc2 && rest.size() > 1 && static_cast<unsigned char>(rest[1]) >= 0x80 &&
                     static_cast<unsigned char>(rest[1]) < 0xa0;
    return two ? 2 : 0;
}

}  // namespace text

/// Copies `from` to `to`, as far as there is room; returns the bytes written. Longest: four bytes for each of `from`.
constexpr std::size_t copy_printable(std::string_view from, std::span<char> to) noexcept
{
    constexpr std::string_view digits = "0123456789abcdef";
    std::size_t size = 0;
    while (!from.empty()) {
        const std::size_t controls = text::control_bytes(from);
        if (controls == 0) {
            if (size == to.size()) {
                break;
            }
            to[size++] = from.front();
            from.remove_prefix(1);
            continue;
        }
        if (to.size() - size < 4 * controls) {
            break;
        }
        for (std::size_t i = 0; i < controls; ++i) {
            const auto byte = static_cast<unsigned char>(from[i]);
            to[size++] = '\\';
            to[size++] = 'x';
            to[size++] = digits[byte >> 4];
            to[size++] = digits[byte & 15];
        }
        from.remove_prefix(controls);
    }
    return size;
}

}  // namespace stillpoint

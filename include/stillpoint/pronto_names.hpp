#pragma once
// Names of types, put together at compile time; the part of pronto.hpp that signatures are made from: include that.

#if __cplusplus < 202002L
#error "Stillpoint's C++ headers need C++20: compile with -std=c++20 or a later standard"
#else

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>

namespace stillpoint::pronto {

/// A text whose length is part of its type, so that names of types can be put together at compile time:
///   static constexpr auto type_name = pronto::text("grid<") + pronto::name_of<T> + pronto::text(">");
template <std::size_t Length>
struct text {
    char bytes[Length + 1] = {};

    constexpr text() = default;
    // NOLINTNEXTLINE(google-explicit-constructor): a literal is a text
    constexpr text(const char (&literal)[Length + 1]) { std::copy_n(literal, Length, bytes); }
    // NOLINTNEXTLINE(google-explicit-constructor)
    [[nodiscard]] constexpr operator std::string_view() const { return {bytes, Length}; }
    [[nodiscard]] constexpr const char* c_str() const { return bytes; }

    template <std::size_t More>
    [[nodiscard]] constexpr text<Length + More> operator+(const text<More>& other) const
    {
        text<Length + More> joined;
        std::copy_n(bytes, Length, joined.bytes);
        std::copy_n(other.bytes, More, joined.bytes + Length);
        return joined;
    }
};
template <std::size_t Size>
text(const char (&)[Size]) -> text<Size - 1>;

namespace detail {

template <std::size_t Value>
constexpr auto decimal()
{
    constexpr std::size_t digits = [] {
        std::size_t count = 1;
        for (std::size_t rest = Value; rest >= 10; rest /= 10) {
            ++count;
        }
        return count;
    }();
    text<digits> written;
    std::size_t rest = Value;
    for (std::size_t place = digits; place-- > 0; rest /= 10) {
        written.bytes[place] = static_cast<char>('0' + rest % 10);
    }
    return written;
}

template <class T>
constexpr auto spelling()
{
    return std::string_view(__PRETTY_FUNCTION__);
}

/// As the compiler spells it: "[with T = a::B]" of GCC, "[T = a::B]" of Clang.
template <class T>
constexpr auto spelled_name()
{
    constexpr std::string_view whole = spelling<T>();
    constexpr std::size_t begin = whole.find("T = ") + 4;
    constexpr std::size_t end = whole.rfind(']');
    text<end - begin> name;
    std::copy_n(whole.data() + begin, end - begin, name.bytes);
    return name;
}

}  // namespace detail

/// T::type_name, a literal or a text; else as the compiler spells T.
template <class T>
[[nodiscard]] constexpr auto class_name()
{
    if constexpr (requires { T::type_name; }) {
        return text(T::type_name);
    } else {
        return detail::spelled_name<T>();
    }
}

namespace detail {

template <class T>
inline constexpr bool is_letter = std::same_as<T, char> || std::same_as<T, wchar_t> || std::same_as<T, char8_t> ||
                                  std::same_as<T, char16_t> || std::same_as<T, char32_t>;

template <class T>
constexpr auto scalar_name()
{
    constexpr auto bits = decimal<sizeof(T) * 8>();
    if constexpr (std::same_as<T, bool>) {
        return text("bool");
    } else if constexpr (std::same_as<T, std::byte>) {
        return text("byte");
    } else if constexpr (std::same_as<T, char>) {
        return text("char");
    } else if constexpr (is_letter<T>) {
        return text("char") + bits;
    } else if constexpr (std::is_enum_v<T>) {
        return text("enum<") + scalar_name<std::underlying_type_t<T>>() + text(">");
    } else if constexpr (std::is_floating_point_v<T>) {
        return text("f") + bits;
    } else {
        return text(std::is_signed_v<T> ? "i" : "u") + bits;
    }
}

}  // namespace detail

}  // namespace stillpoint::pronto

#endif

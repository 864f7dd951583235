#pragma once
// How the durable containers store a T, and take it as argument: std::string is kept as pronto::string and taken as std::string_view,
// std::vector<T> of trivially copyable elements as pronto::vector<T> and std::span<const T>; all others as they are.

#if __cplusplus < 202002L
#error "Stillpoint's C++ headers need C++20: compile with -std=c++20 or a later standard"
#else

#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "stillpoint/pronto.hpp"

namespace stillpoint::durable {

/// Specialise it for a class of yours that keeps ordinary memory.
template <class T>
struct element {
    static_assert(!std::is_pointer_v<T>, "a durable container has no pointers as elements: keep the values, or names of objects");
    static_assert(!std::is_same_v<T, std::string_view>, "a durable container keeps characters as std::string");
    using stored = T;
    using parameter = const T&;
};
template <>
struct element<std::string> {
    using stored = pronto::string;
    using parameter = std::string_view;
};
template <>
struct element<pronto::string> : element<std::string> {};
template <class T, class Allocator>
struct element<std::vector<T, Allocator>> {
    static_assert(std::is_trivially_copyable_v<T>, "a durable container keeps std::vector of trivially copyable elements only; specialise "
                                                   "stillpoint::durable::element for others");
    using stored = pronto::vector<T>;
    using parameter = std::span<const T>;
};

template <class T>
using stored = typename element<T>::stored;
template <class T>
using parameter = typename element<T>::parameter;
/// The element's part of a container's type name.
template <class T>
inline constexpr auto element_name = pronto::name_of<std::remove_cvref_t<parameter<T>>>;

/// `given` in the form that the container keeps.
template <class T>
[[nodiscard]] stored<T> kept(const std::remove_cvref_t<parameter<T>>& given)
{
    if constexpr (requires { stored<T>(given.begin(), given.end()); }) {
        return stored<T>(given.begin(), given.end());
    } else {
        return stored<T>(given);
    }
}

/// As it was given: in ordinary memory.
template <class T>
[[nodiscard]] T taken(stored<T>&& value)
{
    if constexpr (std::is_same_v<T, stored<T>>) {
        return std::move(value);
    } else {
        return T(value.begin(), value.end());
    }
}

}  // namespace stillpoint::durable

#endif

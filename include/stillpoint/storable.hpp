#pragma once
// Which types may lie in durable memory, as far as a compiler can know: the checks of stillpoint.hpp, which includes this.

#if __cplusplus < 202002L
#error "Stillpoint's C++ headers need C++20: compile with -std=c++20 or a later standard"
#else

#include <any>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace stillpoint {

/// True: a T survives a restart. Specialise it for a class of which the checks below are wrong:
///   template <> inline constexpr bool storable<plugin_table> = true;   // its pointers to functions are set again at each start
template <class T>
inline constexpr bool storable = false;

namespace detail {

enum class Unfit {
    nothing,
    reference,
    code,  ///< a pointer to a function
    virtual_functions,
    volatile_memory,  ///< owns memory of malloc, or a thing of the process
};

template <class T>
constexpr Unfit why_unfit();

template <class... Parts>
constexpr Unfit first_unfit()
{
    Unfit found = Unfit::nothing;
    static_cast<void>(((found == Unfit::nothing && (found = why_unfit<Parts>()) != Unfit::nothing) || ...));
    return found;
}

/// Classes of the standard library whose parts are public types.
template <class T>
struct Parts {
    static constexpr Unfit unfit = Unfit::nothing;
};
template <class One, class Other>
struct Parts<std::pair<One, Other>> {
    static constexpr Unfit unfit = first_unfit<One, Other>();
};
template <class... Members>
struct Parts<std::tuple<Members...>> {
    static constexpr Unfit unfit = first_unfit<Members...>();
};
template <class... Choices>
struct Parts<std::variant<Choices...>> {
    static constexpr Unfit unfit = first_unfit<Choices...>();
};
template <class Value>
struct Parts<std::optional<Value>> {
    static constexpr Unfit unfit = why_unfit<Value>();
};

/// Classes of the standard library that own memory of malloc, or a thing of the process.
template <class T>
struct OwnsVolatileMemory : std::false_type {};
template <class T>
struct OwnsVolatileMemory<std::unique_ptr<T, std::default_delete<T>>> : std::true_type {};
template <class T>
struct OwnsVolatileMemory<std::shared_ptr<T>> : std::true_type {};
template <class T>
struct OwnsVolatileMemory<std::weak_ptr<T>> : std::true_type {};
template <class Signature>
struct OwnsVolatileMemory<std::function<Signature>> : std::true_type {};
template <>
struct OwnsVolatileMemory<std::any> : std::true_type {};
template <>
struct OwnsVolatileMemory<std::thread> : std::true_type {};
template <>
struct OwnsVolatileMemory<std::exception_ptr> : std::true_type {};
/// Containers and strings with the standard allocator.
template <class T>
    requires std::is_same_v<typename T::allocator_type, std::allocator<typename T::allocator_type::value_type>>
struct OwnsVolatileMemory<T> : std::true_type {};

/// Stands for any value of a member.
struct AnyValue {
    template <class T>
    operator T() const;  // NOLINT(google-explicit-constructor)
};
/// Stands for a value of a member that does not survive.
struct UnfitValue {
    template <class T>
        requires(why_unfit<T>() != Unfit::nothing)
    operator T() const;  // NOLINT(google-explicit-constructor)
};

template <class T, std::size_t... Before>
constexpr bool is_unfit_after(std::index_sequence<Before...>)
{
    return requires { T{(static_cast<void>(Before), AnyValue{})..., UnfitValue{}}; };
}
/// Whether one of the first 32 members of an aggregate does not survive. Others cannot be looked into.
template <class T>
constexpr bool has_unfit_member()
{
    if constexpr (std::is_aggregate_v<T> && !std::is_array_v<T>) {
        return []<std::size_t... Count>(std::index_sequence<Count...>) {
            return (is_unfit_after<T>(std::make_index_sequence<Count>()) || ...);
        }(std::make_index_sequence<32>());
    } else {
        return false;
    }
}

template <class T>
constexpr Unfit why_unfit()
{
    using Bare = std::remove_cv_t<std::remove_all_extents_t<T>>;
    if constexpr (std::is_reference_v<Bare>) {
        return Unfit::reference;
    } else if constexpr (storable<Bare>) {
        return Unfit::nothing;
    } else if constexpr (std::is_function_v<std::remove_pointer_t<Bare>> || std::is_member_function_pointer_v<Bare>) {
        return Unfit::code;
    } else if constexpr (!std::is_class_v<Bare> && !std::is_union_v<Bare>) {
        return Unfit::nothing;
    } else if constexpr (std::is_polymorphic_v<Bare>) {
        return Unfit::virtual_functions;
    } else if constexpr (OwnsVolatileMemory<Bare>::value || has_unfit_member<Bare>()) {
        return Unfit::volatile_memory;
    } else {
        return Parts<Bare>::unfit;
    }
}

/// One message for each reason.
template <class T>
constexpr void check_storable()
{
    constexpr Unfit why = why_unfit<T>();
    static_assert(why != Unfit::reference, "a reference cannot lie in durable memory: keep a pointer to durable memory, or a value");
    static_assert(
        why != Unfit::code,
        "a pointer to a function cannot lie in durable memory: code has another address in each process. Keep a number or an enum");
    static_assert(why != Unfit::virtual_functions,
                  "an object with virtual functions cannot lie in durable memory: it points to code, which has another address in each "
                  "process. Use std::variant, or keep an enum");
    static_assert(
        why != Unfit::volatile_memory,
        "this type, or one of its members, does not survive a restart: it owns memory of malloc, a thread or a pointer to code. Use "
        "stillpoint::string, vector, map, unique_ptr, or another container with stillpoint::allocator");
}

}  // namespace detail
}  // namespace stillpoint

#endif

#pragma once
// The declarations of a durable class, and its description to the runtime; the errors. The part of pronto.hpp that knows classes: include
// that.

#if __cplusplus < 202002L
#error "Stillpoint's C++ headers need C++20: compile with -std=c++20 or a later standard"
#else

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "stillpoint/pronto.h"
#include "stillpoint/pronto_arguments.hpp"
#include "stillpoint/stillpoint.h"

namespace stillpoint::pronto {

// ---- Errors ---------------------------------------------------------------------------------------

/// what() is the runtime's message: what failed, and what to do. Thrown by name where no class below fits.
class error : public std::runtime_error {
public:
    error(int code, const std::string& message) : std::runtime_error(message), code_(static_cast<sp_error>(code)) {}
    [[nodiscard]] sp_error code() const noexcept { return code_; }

private:
    sp_error code_;
};
/// The object has been changed, and that will not be durable: the medium refuses. Nothing that was acknowledged is lost.
class not_durable : public error {
    using error::error;
};
/// SP_E_OBJECT_REFUSED: an operation failed on the object, and it may not be used until the pool is opened again.
class refused : public error {
    using error::error;
};
/// SP_E_OBJECT_TYPE: the name has an object of another class, or a method of the class was changed; what() names it.
class other_type : public error {
    using error::error;
};

namespace detail {
[[noreturn]] inline void throw_error(int code)
{
    switch (code) {
    case SP_E_OBJECT_REFUSED: throw refused(code, sp_last_error());
    case SP_E_OBJECT_TYPE: throw other_type(code, sp_last_error());
    default: throw error(code, sp_last_error());
    }
}
inline void require_durable(int code)
{
    if (code == SP_E_OBJECT_REFUSED) {
        throw refused(code, sp_last_error());
    }
    if (code != SP_OK) {
        throw not_durable(code, sp_last_error());
    }
}
}  // namespace detail

// ---- Methods ----------------------------------------------------------------------------------------

enum class promise : std::uint32_t {
    none = 0,
    /// If the method throws, the object is as it was: see SP_PRONTO_UNCHANGED_BY_EXCEPTION.
    unchanged_by_exception = SP_PRONTO_UNCHANGED_BY_EXCEPTION
};

/// One method that is an operation. `name` is its identity, kept in the pool: 1 to 63 bytes, unique in the class. A method that was
/// renamed keeps its old name here, or has both.
template <auto Function>
struct method_entry {
    std::string_view name;
    promise promises;
};
template <auto Function>
[[nodiscard]] consteval method_entry<Function> method(const char* name, promise promises = promise::none)
{
    static_assert(std::is_member_function_pointer_v<decltype(Function)>, "pronto::method<&Class::name>(\"name\") takes a method");
    if (std::string_view(name).empty() || std::string_view(name).size() > SP_PRONTO_NAME_BYTES_MAX) {
        throw std::length_error("the name of a method has 1 to 63 bytes");
    }
    return {name, promises};
}

template <class... Entries>
struct method_list {
    static constexpr std::size_t count = sizeof...(Entries);
    std::tuple<Entries...> entries;
};
/// The result of `static constexpr auto methods()` of a durable class. The order of methods does not matter.
template <auto... Functions>
[[nodiscard]] consteval auto methods(method_entry<Functions>... entries)
{
    static_assert(sizeof...(Functions) <= SP_PRONTO_METHODS_MAX, "a durable class has at most 256 operations");
    const std::string_view names[] = {std::string_view(), entries.name...};
    for (std::size_t one = 1; one <= sizeof...(Functions); ++one) {
        for (std::size_t other = 1; other < one; ++other) {
            if (names[one] == names[other]) {
                throw std::invalid_argument("two methods have the same name");
            }
        }
    }
    return method_list<method_entry<Functions>...>{{entries...}};
}

/// `using constructor = pronto::constructor<int, std::string>;` in a durable class: what get_object() passes to its constructor. Without it
/// that is nothing.
template <class... Parameters>
struct constructor {};

namespace detail {

template <class Function>
struct Signature;
template <class Class, class Result, class... Parameters, bool IsNoexcept>
struct Signature<Result (Class::*)(Parameters...) noexcept(IsNoexcept)> {
    static_assert((!(std::is_lvalue_reference_v<Parameters> && !std::is_const_v<std::remove_reference_t<Parameters>>) && ...),
                  "an operation has no reference to non-const as parameter: return what it finds");
    using Values = std::tuple<std::remove_cvref_t<Parameters>...>;
    static constexpr std::size_t count = sizeof...(Parameters);
    static constexpr auto name = text("(") + listed_names<std::remove_cvref_t<Parameters>...>() + text(")");
    static_assert(std::string_view(name).size() <= SP_PRONTO_SIGNATURE_BYTES_MAX,
                  "the names of the parameters' types have more than 255 bytes: give the classes among them a short type_name");

    template <class Object, auto Method>
    static void call(Object& durable, Values& values)
    {
        Class& object = durable;  // The method may be a base's.
        [&]<std::size_t... Place>(std::index_sequence<Place...>) {
            static_cast<void>((object.*Method)(static_cast<Parameters&&>(std::get<Place>(values))...));
        }(std::index_sequence_for<Parameters...>());
    }
};
template <class Class, class Result, class... Parameters, bool IsNoexcept>
struct Signature<Result (Class::*)(Parameters...) const noexcept(IsNoexcept)>
    : Signature<Result (Class::*)(Parameters...) noexcept(IsNoexcept)> {};

template <class Values>
struct Encoding;
template <class... Types>
struct Encoding<std::tuple<Types...>> {
    using Values = std::tuple<Types...>;

    static void write(writer& out, const Types&... values) { (out.put(values), ...); }
    [[nodiscard]] static std::size_t size_of(const Types&... values)
    {
        writer measuring;
        write(measuring, values...);
        return measuring.used_bytes();
    }
    [[nodiscard]] static Values read(const void* from, std::size_t bytes)
    {
        reader in(from, bytes);
        Values values{in.get<Types>()...};
        reader::require(in.is_at_end());
        return values;
    }
};

template <class Self, auto Method>
int replay(void* object, const void* arguments, std::size_t bytes)
{
    using Function = Signature<decltype(Method)>;
    std::optional<typename Function::Values> values;
    try {
        values.emplace(Encoding<typename Function::Values>::read(arguments, bytes));
    } catch (const std::bad_alloc&) {
        return SP_E_NO_MEMORY;
    } catch (...) {
        return SP_E_POOL_CORRUPT;
    }
    Function::template call<Self, Method>(*static_cast<Self*>(object), *values);
    return SP_OK;
}

template <auto Method, class List>
struct PlaceIn;
template <auto Method, auto... Functions>
struct PlaceIn<Method, method_list<method_entry<Functions>...>> {
    static constexpr std::uint32_t value = [] {
        std::uint32_t place = 0;
        static_cast<void>(((std::is_same_v<method_entry<Method>, method_entry<Functions>> || (++place, false)) || ...));
        return place;
    }();
};

template <class Class>
struct ConstructorOf {
    using Values = std::tuple<>;
};
template <class... Parameters>
struct ConstructorOf<constructor<Parameters...>> {
    static_assert((std::is_same_v<Parameters, std::remove_cvref_t<Parameters>> && ...),
                  "pronto::constructor<...> lists values, not references");
    using Values = std::tuple<Parameters...>;
};
template <class Class>
    requires requires { typename Class::constructor; }
struct ConstructorOf<Class> : ConstructorOf<typename Class::constructor> {};

/// The durable object that this thread is making, and where.
struct Making {
    static inline thread_local Making* current = nullptr;
    const std::byte* begin;
    std::size_t size_bytes;
    Making* outer = current;

    Making(const void* place, std::size_t bytes) noexcept : begin(static_cast<const std::byte*>(place)), size_bytes(bytes)
    {
        current = this;
    }
    Making(const Making&) = delete;
    Making& operator=(const Making&) = delete;
    ~Making() { current = outer; }
    [[nodiscard]] static bool has(const void* object) noexcept
    {
        return current != nullptr && static_cast<std::size_t>(static_cast<const std::byte*>(object) - current->begin) < current->size_bytes;
    }
};

/// The runtime's description of a class.
template <class Self>
class TypeOf {
    static constexpr auto name = class_name<Self>();
    static_assert(std::string_view(name).size() >= 1 && std::string_view(name).size() <= SP_PRONTO_NAME_BYTES_MAX,
                  "the name of a durable class has 1 to 63 bytes: give it a `static constexpr char type_name[] = \"...\";`");
    static_assert(!std::is_polymorphic_v<Self>,
                  "a durable class has no virtual functions: the pointer to them, which each object has, is another one in each process");
    static_assert(alignof(Self) <= 64, "a durable class is aligned to at most 64 bytes");

    template <auto... Functions>
    static constexpr auto table(const method_list<method_entry<Functions>...>& list)
    {
        return std::apply(
            [](const auto&... entry) {
                return std::array<sp_pronto_method, sizeof...(Functions) + 1>{
                    sp_pronto_method{entry.name.data(), Signature<decltype(Functions)>::name.c_str(),
                                     static_cast<std::uint32_t>(entry.promises), &replay<Self, Functions>}...};
            },
            list.entries);
    }
    static void construct(void* memory, const void* arguments, std::size_t bytes)
    {
        const Making making(memory, sizeof(Self));
        using Values = typename ConstructorOf<Self>::Values;
        std::apply([&](auto&&... value) { ::new (memory) Self(std::forward<decltype(value)>(value)...); },
                   Encoding<Values>::read(arguments, bytes));
    }
    static void destroy(void* object) { static_cast<Self*>(object)->~Self(); }
    static constexpr auto equal() -> int (*)(const void*, const void*)
    {
        if constexpr (requires(const Self& one) { static_cast<bool>(one == one); }) {
            return [](const void* one, const void* other) -> int {
                return *static_cast<const Self*>(one) == *static_cast<const Self*>(other);
            };
        } else {
            return nullptr;
        }
    }

    static constexpr auto methods = table(Self::methods());
    static constexpr sp_pronto_type type = {name.c_str(),       sizeof(Self), alignof(Self), methods.data(),
                                            methods.size() - 1, &construct,   &destroy,      equal()};

public:
    /// Known before main, so that objects are recovered before they are asked for.
    static inline const int registered = sp_pronto_register(&type);

    [[nodiscard]] static const sp_pronto_type* known()
    {
        if (registered != SP_OK) {
            if (const int code = sp_pronto_register(&type); code != SP_OK) {
                throw_error(code);
            }
        }
        return &type;
    }
};

}  // namespace detail

}  // namespace stillpoint::pronto

#endif

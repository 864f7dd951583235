#pragma once
// How the arguments of operations become bytes of the log and come back, by type; the part of pronto.hpp that knows types. Include that.
//
// Bytes: each number at a multiple of its own alignment (8 at most) from the first, in the byte order of the machine; sequences after
// their length in 4 bytes; gaps are zeroes. Nothing that is read is believed: lengths are held up against the bytes that are there.

#if __cplusplus < 202002L
#error "Stillpoint's C++ headers need C++20: compile with -std=c++20 or a later standard"
#else

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "stillpoint/pronto_names.hpp"

namespace stillpoint::pronto {

// ---- Types as arguments ---------------------------------------------------------------------------

class writer;
class reader;

/// How a T is an argument of operations. There is one for bool, numbers, enums with a stated underlying type, trivially copyable
/// classes, std::string, string_view, span<const T>, vector, array, pair, tuple, optional. For a type of yours specialise it:
///
///   template <> struct stillpoint::pronto::argument<Money> {
///       static constexpr char type_name[] = "money";                     // kept in the pool, part of methods' signatures
///       static void write(writer& out, const Money& value) { out.put(value.currency); out.put(value.cents); }
///       static Money read(reader& in) { auto currency = in.get<std::string>(); return {currency, in.get<std::int64_t>()}; }
///   };
///
/// write() is called twice, first to learn the size: it puts the same both times. If read() throws, the bytes are not a T.
/// Change type_name when you change what they write: then a log with the old bytes is refused, and not misread.
template <class T>
struct argument;

namespace detail {

struct Anything {
    template <class T>
    operator T() const;  // NOLINT(google-explicit-constructor): stands for a member of any type
};
struct AnyPointer {
    template <class T>
        requires std::is_pointer_v<T> || std::is_member_pointer_v<T>
    operator T() const;  // NOLINT(google-explicit-constructor)
};
template <class T, std::size_t... Before>
constexpr bool has_pointer_behind(std::index_sequence<Before...>)
{
    return requires { T{(static_cast<void>(Before), Anything{})..., AnyPointer{}}; };
}
/// Whether one of the first 32 members of an aggregate is a pointer. Others cannot be looked into.
template <class T>
constexpr bool has_pointer_member()
{
    if constexpr (std::is_aggregate_v<T> && !std::is_array_v<T>) {
        return []<std::size_t... Count>(std::index_sequence<Count...>) {
            return (has_pointer_behind<T>(std::make_index_sequence<Count>()) || ...);
        }(std::make_index_sequence<32>());
    } else {
        return false;
    }
}

/// Whether any bytes are a T, and a run of them is written as one. False where argument<T> is not the first one below.
template <class T>
inline constexpr bool is_its_bytes = requires { requires argument<T>::is_its_bytes; };
template <class T>
inline constexpr std::size_t log_alignment = alignof(T) < 8 ? alignof(T) : 8;

}  // namespace detail

/// The name of T as an argument, as it stands in signatures: "i32", "f64", "string", "vector<u8>", "money". It does not depend on the
/// compiler, but for classes without a name of their own.
template <class T>
inline constexpr auto name_of = text(argument<T>::type_name);

// ---- Bytes ----------------------------------------------------------------------------------------

/// Where arguments are written: at first nowhere, to learn their size.
class writer {
public:
    /// Measures.
    writer() = default;
    /// Writes `size_bytes` bytes to `place`, which is 8-byte aligned.
    writer(void* place, std::size_t size_bytes) : place_(static_cast<std::byte*>(place)), end_(size_bytes) {}

    template <class T>
    void put(const T& value)
    {
        argument<T>::write(*this, value);
    }
    /// Bytes, of which the first lies at a multiple of `alignment` (8 at most). Throws std::length_error where more come than were
    /// measured.
    void put_bytes(const void* from, std::size_t bytes, std::size_t alignment = 1)
    {
        const std::size_t begin = (used_ + alignment - 1) & ~(alignment - 1);
        if (place_ != nullptr) {
            if (begin > end_ || bytes > end_ - begin) {
                throw std::length_error("an argument of an operation was changed, or its argument<>::write does not put the same twice");
            }
            std::memset(place_ + used_, 0, begin - used_);
            if (bytes != 0) {
                std::memcpy(place_ + begin, from, bytes);
            }
        }
        used_ = begin + bytes;
    }
    /// Throws std::length_error beyond 4 GiB.
    void put_count(std::size_t count)
    {
        if (count > std::numeric_limits<std::uint32_t>::max()) {
            throw std::length_error("an argument of an operation has more than 4,294,967,295 elements");
        }
        const auto written = static_cast<std::uint32_t>(count);
        put_bytes(&written, sizeof written, alignof(std::uint32_t));
    }
    [[nodiscard]] std::size_t used_bytes() const noexcept { return used_; }

private:
    std::byte* place_ = nullptr;
    std::size_t end_ = 0;
    std::size_t used_ = 0;
};

/// The bytes are not what their type's argument<>::write writes.
class malformed_arguments : public std::exception {
public:
    [[nodiscard]] const char* what() const noexcept override { return "the logged arguments are not of their types"; }
};

/// Where arguments are read from. Every function throws malformed_arguments.
class reader {
public:
    /// `from` is 8-byte aligned, and stays while views of it are used.
    reader(const void* from, std::size_t size_bytes) : from_(static_cast<const std::byte*>(from)), end_(size_bytes)
    {
        require(reinterpret_cast<std::uintptr_t>(from) % 8 == 0);
    }

    template <class T>
    [[nodiscard]] T get()
    {
        return argument<T>::read(*this);
    }
    [[nodiscard]] const std::byte* get_bytes(std::size_t bytes, std::size_t alignment = 1)
    {
        const std::size_t begin = (used_ + alignment - 1) & ~(alignment - 1);
        require(begin <= end_ && bytes <= end_ - begin);
        used_ = begin + bytes;
        return from_ + begin;
    }
    /// Reads a count of elements that have at least `element_bytes` bytes each.
    [[nodiscard]] std::size_t get_count(std::size_t element_bytes = 1)
    {
        std::uint32_t count = 0;
        std::memcpy(&count, get_bytes(sizeof count, alignof(std::uint32_t)), sizeof count);
        require(count <= (end_ - used_) / element_bytes);
        return count;
    }
    [[nodiscard]] std::size_t used_bytes() const noexcept { return used_; }
    [[nodiscard]] bool is_at_end() const noexcept { return used_ == end_; }

    static void require(bool holds)
    {
        if (!holds) {
            throw malformed_arguments();
        }
    }

private:
    const std::byte* from_;
    std::size_t end_;
    std::size_t used_ = 0;
};

// ---- Arguments by type ------------------------------------------------------------------------------

/// Numbers, enums, trivially copyable classes: their bytes.
template <class T>
struct argument {
    static_assert(!std::is_pointer_v<T> && !std::is_member_pointer_v<T> && !std::is_null_pointer_v<T>,
                  "an operation cannot have a pointer as argument: after a crash it points to nothing. Take what it points to by value, "
                  "std::string_view for characters, std::span<const T> for arrays");
    static_assert(!std::is_reference_v<T>, "the arguments of operations are values");
    static_assert(
        !std::is_enum_v<T> || requires { T{0}; } || std::same_as<T, std::byte>,
        "an enum as argument of an operation has a stated underlying type: `enum class color : int`, or `enum color : int`");
    static_assert(!std::is_class_v<T> || std::is_trivially_copyable_v<T>,
                  "this class is not trivially copyable: its bytes in the log would mean nothing. Specialise "
                  "stillpoint::pronto::argument<T>, with type_name, write() and read()");
    static_assert(!std::is_class_v<T> || !detail::has_pointer_member<T>(),
                  "this class has a pointer among its members, which points to nothing after a crash. Specialise "
                  "stillpoint::pronto::argument<T>, with type_name, write() and read()");
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_class_v<T>,
                  "an operation cannot have an argument of this type. Specialise stillpoint::pronto::argument<T>, or pass a std::array");

    static constexpr bool is_its_bytes = !std::same_as<T, bool>;
    static constexpr auto type_name = [] {
        if constexpr (std::is_class_v<T>) {
            return class_name<T>() + text("[") + detail::decimal<sizeof(T)>() + text("]");
        } else {
            return detail::scalar_name<T>();
        }
    }();

    static void write(writer& out, const T& value) { out.put_bytes(&value, sizeof value, detail::log_alignment<T>); }
    static T read(reader& in)
    {
        const std::byte* const from = in.get_bytes(sizeof(T), detail::log_alignment<T>);
        if constexpr (std::same_as<T, bool>) {
            reader::require(*from <= std::byte{1});
        }
        std::array<std::byte, sizeof(T)> bytes;
        std::memcpy(bytes.data(), from, sizeof(T));
        return std::bit_cast<T>(bytes);
    }
};

/// Points into the log in a replay: the method copies what it keeps.
template <>
struct argument<std::string_view> {
    static constexpr char type_name[] = "string";
    static void write(writer& out, std::string_view value)
    {
        out.put_count(value.size());
        out.put_bytes(value.data(), value.size());
    }
    static std::string_view read(reader& in)
    {
        const std::size_t count = in.get_count();
        return {reinterpret_cast<const char*>(in.get_bytes(count)), count};
    }
};

template <class Allocator>
struct argument<std::basic_string<char, std::char_traits<char>, Allocator>> {
    using String = std::basic_string<char, std::char_traits<char>, Allocator>;
    static constexpr char type_name[] = "string";
    static void write(writer& out, const String& value) { argument<std::string_view>::write(out, value); }
    static String read(reader& in) { return String(argument<std::string_view>::read(in)); }
};

/// Points into the log in a replay, as string_view does.
template <class T>
struct argument<std::span<const T>> {
    static_assert(detail::is_its_bytes<T>,
                  "a std::span in an operation points into the log when it is run again, so its elements are numbers, enums or trivially "
                  "copyable classes. Take a std::vector");
    static_assert(alignof(T) <= 8, "the log aligns to 8 bytes: take a std::vector of this type, which copies");

    static constexpr auto type_name = text("vector<") + name_of<T> + text(">");

    static void write(writer& out, std::span<const T> value)
    {
        out.put_count(value.size());
        out.put_bytes(value.data(), value.size_bytes(), alignof(T));
    }
    static std::span<const T> read(reader& in)
    {
        const std::size_t count = in.get_count(sizeof(T));
        return {reinterpret_cast<const T*>(in.get_bytes(count * sizeof(T), alignof(T))), count};
    }
};
template <class T>
    requires(!std::is_const_v<T>)
struct argument<std::span<T>> {
    static_assert(std::is_const_v<T>, "an operation cannot return something by its arguments: take a std::span<const T>");
};

namespace detail {
/// Elements one by one, each at least a byte, so that an impossible length is found.
template <class Element>
void write_element(writer& out, const Element& element)
{
    const std::size_t before = out.used_bytes();
    out.put(element);
    if (out.used_bytes() == before) {
        out.put_bytes("", 1);
    }
}
template <class Element>
Element read_element(reader& in)
{
    const std::size_t before = in.used_bytes();
    Element element = in.get<Element>();
    if (in.used_bytes() == before) {
        static_cast<void>(in.get_bytes(1));
    }
    return element;
}
}  // namespace detail

template <class T, class Allocator>
struct argument<std::vector<T, Allocator>> {
    static constexpr auto type_name = text("vector<") + name_of<T> + text(">");
    static constexpr bool is_copied_whole = detail::is_its_bytes<T> && alignof(T) <= 8;

    static void write(writer& out, const std::vector<T, Allocator>& value)
    {
        if constexpr (is_copied_whole) {
            argument<std::span<const T>>::write(out, value);
        } else {
            out.put_count(value.size());
            for (const T& element : value) {
                detail::write_element<T>(out, element);
            }
        }
    }
    static std::vector<T, Allocator> read(reader& in)
    {
        if constexpr (is_copied_whole) {
            const std::span<const T> found = argument<std::span<const T>>::read(in);
            return std::vector<T, Allocator>(found.begin(), found.end());
        } else {
            std::vector<T, Allocator> value;
            for (std::size_t left = in.get_count(); left > 0; --left) {
                value.push_back(detail::read_element<T>(in));
            }
            return value;
        }
    }
};

template <class T, std::size_t Count>
struct argument<std::array<T, Count>> {
    static constexpr auto type_name = text("array<") + name_of<T> + text(",") + detail::decimal<Count>() + text(">");
    static void write(writer& out, const std::array<T, Count>& value)
    {
        for (const T& element : value) {
            out.put(element);
        }
    }
    static std::array<T, Count> read(reader& in)
    {
        return [&]<std::size_t... Place>(std::index_sequence<Place...>) {
            return std::array<T, Count>{(static_cast<void>(Place), in.get<T>())...};
        }(std::make_index_sequence<Count>());
    }
};

namespace detail {
/// "a,b,c"
template <class... Types>
constexpr auto listed_names()
{
    if constexpr (sizeof...(Types) == 0) {
        return text("");
    } else {
        return []<class First, class... Rest>(std::type_identity<std::tuple<First, Rest...>>) {
            return (name_of<First> + ... + (text(",") + name_of<Rest>));
        }(std::type_identity<std::tuple<Types...>>());
    }
}
}  // namespace detail

template <class First, class Second>
struct argument<std::pair<First, Second>> {
    static constexpr auto type_name = text("pair<") + detail::listed_names<First, Second>() + text(">");
    static void write(writer& out, const std::pair<First, Second>& value)
    {
        out.put(value.first);
        out.put(value.second);
    }
    static std::pair<First, Second> read(reader& in) { return std::pair<First, Second>{in.get<First>(), in.get<Second>()}; }
};

template <class... Types>
struct argument<std::tuple<Types...>> {
    static constexpr auto type_name = text("tuple<") + detail::listed_names<Types...>() + text(">");
    static void write(writer& out, const std::tuple<Types...>& value)
    {
        std::apply([&](const Types&... element) { (out.put(element), ...); }, value);
    }
    static std::tuple<Types...> read([[maybe_unused]] reader& in) { return std::tuple<Types...>{in.get<Types>()...}; }
};

template <class T>
struct argument<std::optional<T>> {
    static constexpr auto type_name = text("optional<") + name_of<T> + text(">");
    static void write(writer& out, const std::optional<T>& value)
    {
        out.put(value.has_value());
        if (value) {
            out.put(*value);
        }
    }
    static std::optional<T> read(reader& in) { return in.get<bool>() ? std::optional<T>(in.get<T>()) : std::nullopt; }
};

}  // namespace stillpoint::pronto

#endif

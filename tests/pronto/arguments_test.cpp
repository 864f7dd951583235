// Arguments are read as they were written, whatever the types; views point to the written bytes; other bytes are refused, and
// nothing outside the bytes is touched (under the address and undefined-behaviour sanitizers).

#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "stillpoint/pronto.hpp"

namespace pronto = stillpoint::pronto;

namespace {

enum class Colour : std::uint8_t { red = 1, blue = 200 };

struct Point {
    std::int32_t x, y;
    bool operator==(const Point&) const = default;
};

struct Named {
    static constexpr char type_name[] = "named";
    double value;
    bool operator==(const Named&) const = default;
};

/// Not trivially copyable: by the hook.
struct Money {
    std::string currency;
    std::int64_t cents;
    bool operator==(const Money&) const = default;
};

struct Nothing {
    Nothing() {}
    Nothing(const Nothing&) {}
    Nothing& operator=(const Nothing&) = default;
    ~Nothing() = default;
    bool operator==(const Nothing&) const { return true; }
};

}  // namespace

template <>
struct stillpoint::pronto::argument<Money> {
    static constexpr char type_name[] = "money";
    static void write(writer& out, const Money& value)
    {
        out.put(value.currency);
        out.put(value.cents);
    }
    static Money read(reader& in)
    {
        std::string currency = in.get<std::string>();
        return {std::move(currency), in.get<std::int64_t>()};
    }
};

template <>
struct stillpoint::pronto::argument<Nothing> {
    static constexpr char type_name[] = "nothing";
    static void write(writer&, const Nothing&) {}
    static Nothing read(reader&) { return {}; }
};

namespace {

/// Bytes of exactly their size, 8-byte aligned, so that a sanitizer sees what is read after them.
struct Bytes {
    explicit Bytes(std::size_t count) : size(count), place(new(std::align_val_t{8}) std::byte[count]) {}
    std::size_t size;
    struct Delete {
        void operator()(std::byte* block) const { ::operator delete[](block, std::align_val_t{8}); }
    };
    std::unique_ptr<std::byte[], Delete> place;
};

template <class... Types>
Bytes encoded(const Types&... values)
{
    using Encoding = pronto::detail::Encoding<std::tuple<Types...>>;
    Bytes bytes(Encoding::size_of(values...));
    pronto::writer out(bytes.place.get(), bytes.size);
    Encoding::write(out, values...);
    EXPECT_EQ(out.used_bytes(), bytes.size);
    return bytes;
}

template <class... Types>
std::tuple<Types...> decoded(const Bytes& bytes)
{
    return pronto::detail::Encoding<std::tuple<Types...>>::read(bytes.place.get(), bytes.size);
}

/// Comes back; no prefix of it does; and changed bytes either make another value or are refused.
template <class... Types>
void expect_round_trip(const Types&... values)
{
    const Bytes bytes = encoded(values...);
    EXPECT_EQ((decoded<Types...>(bytes)), std::tuple(values...));
    for (std::size_t length = 0; length < bytes.size; ++length) {
        Bytes prefix(length);
        std::copy_n(bytes.place.get(), length, prefix.place.get());
        EXPECT_THROW((decoded<Types...>(prefix)), pronto::malformed_arguments) << length;
    }
    std::mt19937 random(7);
    for (int round = 0; round < 2000 && bytes.size != 0; ++round) {
        Bytes damaged(bytes.size);
        std::copy_n(bytes.place.get(), bytes.size, damaged.place.get());
        for (auto changes = 1 + random() % 3; changes > 0; --changes) {
            damaged.place[random() % bytes.size] = std::byte{static_cast<unsigned char>(round % 2 == 0 ? random() : 0xFFU)};
        }
        try {
            static_cast<void>(decoded<Types...>(damaged));
        } catch (const pronto::malformed_arguments&) {  // As good as another value.
        }
    }
}

TEST(Arguments, NumbersAndEnumsComeBack)
{
    expect_round_trip(true, false, 'c', std::int8_t{-8}, std::uint16_t{65535}, -123456789, std::uint64_t{1} << 63U, 1.5F, -0.25,
                      Colour::blue, std::byte{7});
    expect_round_trip(std::numeric_limits<long double>::max());
    expect_round_trip();
}

TEST(Arguments, TextsAndVectorsComeBack)
{
    expect_round_trip(std::string("text"), std::string(), std::string("with\0nul", 8), 1, std::string(300, 'y'));
    expect_round_trip(std::vector<int>{1, 2, 3}, std::vector<double>{}, std::vector<std::string>{"a", "", "ccc"},
                      std::vector<bool>{true, false});
    expect_round_trip(std::vector<std::vector<std::uint16_t>>{{1}, {}, {2, 3}}, std::vector<Money>{{"EUR", 5}, {"USD", -7}});
}

TEST(Arguments, CompoundsComeBack)
{
    expect_round_trip(std::pair(1, std::string("one")), std::tuple(2.0, 'x', std::vector<int>{3}), std::tuple<>());
    expect_round_trip(std::array<int, 4>{1, 2, 3, 4}, std::array<std::string, 2>{"a", "b"}, std::array<std::int64_t, 0>{});
    expect_round_trip(std::optional<int>(), std::optional<int>(5), std::optional<std::string>("six"));
    expect_round_trip(Point{1, -2}, Named{0.5}, std::vector<Point>{{3, 4}}, Money{"EUR", 499});
}

TEST(Arguments, ElementsThatWriteNothingAreStillCounted)
{
    expect_round_trip(std::vector<Nothing>(5), 7);
    Bytes huge = encoded(std::uint32_t{0xFFFFFFFF});
    EXPECT_THROW((decoded<std::vector<Nothing>>(huge)), pronto::malformed_arguments);
    EXPECT_THROW((decoded<std::vector<std::vector<std::string>>>(huge)), pronto::malformed_arguments);
}

TEST(Arguments, ViewsPointToWhatWasWritten)
{
    const std::vector<std::uint64_t> numbers{1, 2, 3};
    const Bytes bytes = encoded(std::string_view("some text"), std::span<const std::uint64_t>(numbers));
    const auto [text, span] = decoded<std::string_view, std::span<const std::uint64_t>>(bytes);
    EXPECT_EQ(text, "some text");
    EXPECT_TRUE(std::equal(span.begin(), span.end(), numbers.begin(), numbers.end()));
    const auto* const begin = reinterpret_cast<const char*>(bytes.place.get());
    EXPECT_TRUE(text.data() > begin && text.data() < begin + bytes.size);
    EXPECT_TRUE(reinterpret_cast<const char*>(span.data()) > begin && reinterpret_cast<const char*>(span.data()) < begin + bytes.size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(span.data()) % alignof(std::uint64_t), 0U);
}

TEST(Arguments, AViewReadsWhatAStringWroteAndTheReverse)
{
    EXPECT_EQ(std::get<0>(decoded<std::string_view>(encoded(std::string("same")))), "same");
    EXPECT_EQ(std::get<0>(decoded<std::vector<int>>(encoded(std::span<const int>(std::array{4, 5})))), (std::vector{4, 5}));
    EXPECT_EQ(std::get<0>(decoded<pronto::string>(encoded(std::string("same")))), std::string_view("same"));
}

TEST(Arguments, ABoolThatIsNoneIsRefused)
{
    EXPECT_THROW((decoded<bool>(encoded(std::uint8_t{2}))), pronto::malformed_arguments);
    EXPECT_THROW((decoded<std::optional<int>>(encoded(std::uint8_t{255}, 1))), pronto::malformed_arguments);
    EXPECT_THROW((decoded<std::vector<bool>>(encoded(std::uint32_t{1}, std::uint8_t{9}))), pronto::malformed_arguments);
}

TEST(Arguments, WhatIsLeftOverIsRefused)
{
    EXPECT_THROW((decoded<int>(encoded(1, 2))), pronto::malformed_arguments);
    EXPECT_THROW((decoded<std::string>(encoded(std::string("a"), 'b'))), pronto::malformed_arguments);
}

TEST(Arguments, BytesThatAreNotAlignedAreRefused)
{
    const Bytes bytes = encoded(std::uint64_t{1}, std::uint64_t{2});
    EXPECT_THROW((pronto::reader(bytes.place.get() + 1, 8)), pronto::malformed_arguments);
}

TEST(Arguments, GapsAreZeroes)
{
    const Bytes bytes = encoded('a', std::uint64_t{~std::uint64_t{0}});
    for (std::size_t place = 1; place < 8; ++place) {
        EXPECT_EQ(bytes.place[place], std::byte{0});
    }
}

TEST(Arguments, AValueThatGrowsWhileItIsWrittenIsNoticed)
{
    std::vector<std::uint64_t> room(2);
    pronto::writer out(room.data(), 9);
    out.put(std::uint64_t{1});
    EXPECT_THROW(out.put(std::uint64_t{2}), std::length_error);
}

TEST(Arguments, NamesOfTypesDoNotDependOnTheCompiler)
{
    const auto name = []<class T>(std::type_identity<T>) { return std::string(std::string_view(pronto::name_of<T>)); };
    EXPECT_EQ(name(std::type_identity<int>()), "i32");
    EXPECT_EQ(name(std::type_identity<long>()), "i64");
    EXPECT_EQ(name(std::type_identity<long long>()), "i64");
    EXPECT_EQ(name(std::type_identity<unsigned char>()), "u8");
    EXPECT_EQ(name(std::type_identity<char>()), "char");
    EXPECT_EQ(name(std::type_identity<char16_t>()), "char16");
    EXPECT_EQ(name(std::type_identity<bool>()), "bool");
    EXPECT_EQ(name(std::type_identity<std::byte>()), "byte");
    EXPECT_EQ(name(std::type_identity<float>()), "f32");
    EXPECT_EQ(name(std::type_identity<Colour>()), "enum<u8>");
    EXPECT_EQ(name(std::type_identity<std::string_view>()), "string");
    EXPECT_EQ(name(std::type_identity<std::span<const double>>()), "vector<f64>");
    EXPECT_EQ(name(std::type_identity<std::vector<std::optional<std::string>>>()), "vector<optional<string>>");
    EXPECT_EQ((name(std::type_identity<std::array<std::pair<int, Money>, 12>>())), "array<pair<i32,money>,12>");
    EXPECT_EQ((name(std::type_identity<std::tuple<>>())), "tuple<>");
    EXPECT_EQ(name(std::type_identity<Named>()), "named[8]");
}

}  // namespace

#include "option_flags.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace stillpoint::tool {

namespace {

constexpr std::string_view unit_suffixes[] = {"_ms", "_ns", "_mb"};

/// The part of a table name before its unit, or all of it.
std::string_view without_unit(std::string_view name)
{
    for (const std::string_view unit : unit_suffixes) {
        if (name.ends_with(unit)) {
            return name.substr(0, name.size() - unit.size());
        }
    }
    return name;
}

struct Unit {
    std::string_view option_suffix;
    std::string_view word;
    std::uint64_t factor;
    bool divides = false;  ///< the unit is smaller than the option's
};

constexpr Unit units[] = {
    {"_ms", "ms", 1},         {"_ms", "s", 1000}, {"_ms", "m", 60'000}, {"_ms", "min", 60'000},
    {"_ms", "h", 3'600'000},  {"_ns", "ns", 1},   {"_ns", "us", 1000},  {"_ns", "ms", 1'000'000},
    {"_mb", "k", 1024, true}, {"_mb", "m", 1},    {"_mb", "g", 1024},   {"_mb", "t", 1024 * 1024},
};

}  // namespace

std::string flags_of(const OptionRow& row)
{
    const std::string full = row.flag_name();
    std::string brief = "--" + std::string(without_unit(row.name));
    std::ranges::replace(brief, '_', '-');
    return brief == full ? full : brief + "," + full;
}

const char* value_word_of(const OptionRow& row)
{
    return row.kind == OptionKind::number ? "NUMBER" : row.kind == OptionKind::choice ? "WORD" : "PATH";
}

std::optional<std::uint64_t> parse_quantity(std::string_view option_name, std::string_view text)
{
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{}) {
        return std::nullopt;
    }
    std::string word(end, text.data() + text.size());
    if (word.empty()) {
        return number;
    }
    for (char& c : word) {
        c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    if (option_name.ends_with("_mb") && word.size() > 1) {
        // "MiB", "MB" and "M" are the same here: powers of 1024, as the table says.
        word = (word.substr(1) == "ib" || word.substr(1) == "b") ? word.substr(0, 1) : "?";
    }
    for (const Unit& unit : units) {
        if (!option_name.ends_with(unit.option_suffix) || word != unit.word) {
            continue;
        }
        if (unit.divides) {
            return number % unit.factor == 0 ? std::optional(number / unit.factor) : std::nullopt;
        }
        std::uint64_t product = 0;
        return __builtin_mul_overflow(number, unit.factor, &product) ? std::nullopt : std::optional(product);
    }
    return std::nullopt;
}

}  // namespace stillpoint::tool

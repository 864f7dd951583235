#include "runtime/options.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace stillpoint {

namespace {

/// The word of `words` that equals `value`, as static text; empty if there is none.
std::string_view find_word(std::string_view words, std::string_view value) noexcept
{
    while (!words.empty()) {
        const auto end = std::min(words.find('|'), words.size());
        if (words.substr(0, end) == value) {
            return words.substr(0, end);
        }
        words.remove_prefix(std::min(end + 1, words.size()));
    }
    return {};
}

Result<OptionValue> parse_choice(const OptionRow& row, std::string_view text)
{
    const auto word = find_word(row.words, text);
    if (word.empty()) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "option {}: '{}' is not one of {}", row.name, text, row.words);
    }
    return OptionValue{word};
}

Result<OptionValue> parse_number(const OptionRow& row, std::string_view text)
{
    std::uint64_t number = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
    if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size()) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "option {}: '{}' is not a whole number from {} to {}", row.name, text, row.minimum,
                    row.maximum);
    }
    if (number < row.minimum || number > row.maximum) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "option {}: {} is not between {} and {}", row.name, number, row.minimum, row.maximum);
    }
    return OptionValue{number};
}

Result<OptionValue> parse_flag(const OptionRow& row, std::string_view text)
{
    const bool is_set = !find_word("1|true|yes|on", text).empty();
    if (!is_set && find_word("0|false|no|off", text).empty()) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "option {}: '{}' is neither true nor false", row.name, text);
    }
    return OptionValue{is_set};
}

}  // namespace

Result<OptionValue> parse_option_value(const OptionRow& row, std::string_view text)
{
    switch (row.kind) {
    case OptionKind::choice: return parse_choice(row, text);
    case OptionKind::number: return parse_number(row, text);
    case OptionKind::flag: return parse_flag(row, text);
    case OptionKind::text: break;
    }
    return OptionValue{std::string(text)};
}

std::string OptionRow::environment_name() const
{
    std::string text{option_environment_prefix};
    for (const char c : name) {
        text += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    return text;
}

std::string OptionRow::flag_name() const
{
    std::string text = "--" + std::string{name};
    std::ranges::replace(text, '_', '-');
    return text;
}

OptionValue own_option_value(const Options& options, const OptionRow& row)
{
    const auto set = options.own.find(row.name);
    return set != options.own.end() ? set->second : parse_option_value(row, row.default_text).value();
}

}  // namespace stillpoint

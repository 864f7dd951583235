#include "runtime/options.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <unistd.h>

#include "os/environment.hpp"
#include "os/log.hpp"

namespace stillpoint {

namespace {

constexpr OptionRow rows[] = {
#define OPTION_TEXT(name, initial, sentence) \
    {OptionKind::text, #name, initial, 0, 0, {}, sentence},
#define OPTION_CHOICE(name, initial, words, sentence) \
    {OptionKind::choice, #name, initial, 0, 0, words, sentence},
#define OPTION_NUMBER(name, initial, minimum, maximum, sentence) \
    {OptionKind::number, #name, #initial, minimum, maximum, {}, sentence},
#define OPTION_FLAG(name, initial, sentence) \
    {OptionKind::flag, #name, #initial, 0, 0, {}, sentence},
#include "runtime/options.inc"
#undef OPTION_TEXT
#undef OPTION_CHOICE
#undef OPTION_NUMBER
#undef OPTION_FLAG
};

static_assert(std::size(rows) <= 64, "Options::given has a bit for each row");

std::uint64_t bit_of(const OptionRow& row) noexcept { return std::uint64_t{1} << (&row - rows); }

constexpr std::string_view environment_prefix = "STILLPOINT_";
/// Variables of that prefix that are no options: the session's mark of the process that opened the
/// pool, and the plan of the fault injection.
constexpr std::string_view other_variables[] = {"owner",   "run",   "fault", "fault_met", "lint_report",
                                              "runtime", "clang", "clangxx",   "symbolizer"};

bool same_name(std::string_view row_name, std::string_view given) noexcept
{
    return std::ranges::equal(row_name, given, [](char a, char b) {
        return a == b || (a == '_' && b == '-');
    });
}

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

Result<void> assign(std::string& field, const OptionRow&, std::string_view value)
{
    field = value;
    return {};
}

Result<void> assign(std::string_view& field, const OptionRow& row, std::string_view value)
{
    const auto word = find_word(row.words, value);
    if (word.empty()) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "option {}: '{}' is not one of {}", row.name, value,
                    row.words);
    }
    field = word;
    return {};
}

Result<void> assign(std::uint64_t& field, const OptionRow& row, std::string_view value)
{
    std::uint64_t number = 0;
    const auto parsed = std::from_chars(value.data(), value.data() + value.size(), number);
    if (parsed.ec != std::errc{} || parsed.ptr != value.data() + value.size()) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "option {}: '{}' is not a whole number from {} to {}",
                    row.name, value, row.minimum, row.maximum);
    }
    if (number < row.minimum || number > row.maximum) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "option {}: {} is not between {} and {}", row.name,
                    number, row.minimum, row.maximum);
    }
    field = number;
    return {};
}

Result<void> assign(bool& field, const OptionRow& row, std::string_view value)
{
    if (!find_word("1|true|yes|on", value).empty()) {
        field = true;
    } else if (!find_word("0|false|no|off", value).empty()) {
        field = false;
    } else {
        return fail(SP_E_INVALID_ARGUMENT, 0, "option {}: '{}' is neither true nor false", row.name,
                    value);
    }
    return {};
}

/// Levenshtein distance; names longer than the table's longest are cut.
std::size_t edit_distance(std::string_view a, std::string_view b) noexcept
{
    constexpr std::size_t length_max = 48;
    a = a.substr(0, length_max);
    b = b.substr(0, length_max);
    std::array<std::size_t, length_max + 1> row{};
    for (std::size_t j = 0; j <= b.size(); ++j) {
        row[j] = j;
    }
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0u : 1u);
            diagonal = row[j];
            row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
        }
    }
    return row[b.size()];
}

tl::unexpected<Failure> fail_unknown(std::string_view name)
{
    std::string all;
    for (const auto& row : rows) {
        all += all.empty() ? "" : ", ";
        all += row.name;
    }
    return fail(SP_E_INVALID_ARGUMENT, 0, "there is no option '{}'; did you mean '{}'? Options: {}",
                name.substr(0, 64), nearest_option(name).name, all);
}

}  // namespace

std::string OptionRow::environment_name() const
{
    std::string text{environment_prefix};
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

std::span<const OptionRow> option_rows() noexcept { return rows; }

const OptionRow* find_option(std::string_view name) noexcept
{
    const auto found = std::ranges::find_if(
        rows, [name](const OptionRow& row) { return same_name(row.name, name); });
    return found == std::end(rows) ? nullptr : found;
}

const OptionRow& nearest_option(std::string_view name) noexcept
{
    return *std::ranges::min_element(
        rows, {}, [name](const OptionRow& row) { return edit_distance(row.name, name); });
}

Result<void> parse_option(Options& options, std::string_view name, std::string_view value)
{
    const OptionRow* row = find_option(name);
    if (row == nullptr) {
        return fail_unknown(name);
    }
    Result<void> assigned = fail_unknown(name);
#define ASSIGN(field)                                  \
    if (row->name == #field) {                         \
        assigned = assign(options.field, *row, value); \
    }
#define OPTION_TEXT(option, initial, sentence) ASSIGN(option)
#define OPTION_CHOICE(option, initial, words, sentence) ASSIGN(option)
#define OPTION_NUMBER(option, initial, minimum, maximum, sentence) ASSIGN(option)
#define OPTION_FLAG(option, initial, sentence) ASSIGN(option)
#include "runtime/options.inc"
#undef OPTION_TEXT
#undef OPTION_CHOICE
#undef OPTION_NUMBER
#undef OPTION_FLAG
#undef ASSIGN
    if (assigned) {
        options.given |= bit_of(*row);
    }
    return assigned;
}

bool is_given(const Options& options, std::string_view name) noexcept
{
    const OptionRow* const row = find_option(name);
    return row != nullptr && (options.given & bit_of(*row)) != 0;
}

Result<void> parse_option_text(Options& options, std::string_view text)
{
    constexpr std::string_view blanks = " \t\n";
    while (true) {
        text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
        if (text.empty()) {
            return {};
        }
        const auto item = text.substr(0, text.find_first_of(blanks));
        text.remove_prefix(item.size());
        const auto equals = item.find('=');
        const OptionRow* row = find_option(item.substr(0, equals));
        if (equals == std::string_view::npos && row != nullptr && row->kind != OptionKind::flag) {
            return fail(SP_E_INVALID_ARGUMENT, 0, "option {} needs a value: write {}=VALUE",
                        row->name, row->name);
        }
        const auto value = equals == std::string_view::npos ? "true" : item.substr(equals + 1);
        if (auto parsed = parse_option(options, item.substr(0, equals), value); !parsed) {
            return parsed;
        }
    }
}

Result<Options> options_from_environment()
{
    Options options;
    if (os::environment_is_foreign()) {
        return options;
    }
    for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
        std::string_view text = *variable;
        const auto equals = text.find('=');
        if (equals == std::string_view::npos || !text.starts_with(environment_prefix)) {
            continue;
        }
        const auto variable_name = text.substr(0, equals);
        std::string name{variable_name.substr(environment_prefix.size())};
        std::ranges::transform(name, name.begin(), [](char c) {
            return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        });
        if (std::ranges::find(other_variables, name) != std::end(other_variables)) {
            continue;
        }
        if (find_option(name) == nullptr) {
            os::log(os::Severity::warning, "{} is set but names no option; did you mean {}?",
                    variable_name.substr(0, 80), nearest_option(name).environment_name());
            continue;
        }
        if (auto parsed = parse_option(options, name, text.substr(equals + 1)); !parsed) {
            return fail(SP_E_INVALID_ARGUMENT, 0, "environment variable {}: {}", variable_name,
                        parsed.error().text());
        }
    }
    return options;
}

std::string option_value(const Options& options, const OptionRow& row)
{
#define OPTION_TEXT(option, initial, sentence) \
    if (row.name == #option) {                 \
        return options.option;                 \
    }
#define OPTION_CHOICE(option, initial, words, sentence) \
    if (row.name == #option) {                          \
        return std::string{options.option};             \
    }
#define OPTION_NUMBER(option, initial, minimum, maximum, sentence) \
    if (row.name == #option) {                                     \
        return std::to_string(options.option);                     \
    }
#define OPTION_FLAG(option, initial, sentence)    \
    if (row.name == #option) {                    \
        return options.option ? "true" : "false"; \
    }
#include "runtime/options.inc"
#undef OPTION_TEXT
#undef OPTION_CHOICE
#undef OPTION_NUMBER
#undef OPTION_FLAG
    return {};
}

Result<void> check_options(const Options& options)
{
    if (is_given(options, "pool_size_mb") && options.pool_size_mb > options.pool_max_mb) {
        return fail(SP_E_INVALID_ARGUMENT, 0,
                    "option pool_size_mb ({}) is larger than pool_max_mb ({}); raise pool_max_mb",
                    options.pool_size_mb, options.pool_max_mb);
    }
    if (options.verify_marks && options.tracker != "hooks") {
        return fail(SP_E_INVALID_ARGUMENT, 0,
                    "option verify_marks compares the marks of the tracker hooks, and the tracker is {}; say tracker hooks",
                    options.tracker);
    }
    return {};
}

}  // namespace stillpoint

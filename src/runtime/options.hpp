#pragma once
// Options: one struct, and tables of rows. options.inc has what does not depend on the engine; each engine's options.inc has its own
// options, and the engine's driver lists them. Environment, command line, sp_open's text and docs/guide/options.md come from the rows
// (api/options.hpp): adding a row adds the option everywhere.

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "core/result.hpp"

namespace stillpoint {

/// Name of the engine that a new pool has where none is named: the first of the registry (src/api), where Options are made. Static text.
[[nodiscard]] std::string_view default_engine() noexcept;
/// A text; a choice, as one of its row's words (static text); a number; a flag.
using OptionValue = std::variant<std::string, std::string_view, std::uint64_t, bool>;

/// The options of one session. A choice holds one of its row's words (static text); numbers lie within
/// their row's bounds. Start-up only: the text is a std::string.
struct Options {
#define OPTION_TEXT(name, initial, sentence) std::string name = initial;
#define OPTION_CHOICE(name, initial, words, sentence) std::string_view name = initial;
#define OPTION_NUMBER(name, initial, minimum, maximum, sentence) std::uint64_t name = initial;
#define OPTION_FLAG(name, initial, sentence) bool name = initial;
#include "runtime/options.inc"
#include "runtime/option_macros_end.inc"
    /// The values of the engines' own options, by name (static text): own_option().
    std::map<std::string_view, OptionValue> own;
    /// One bit for each row that was set, by the order of option_rows(): is_given().
    std::uint64_t given = 0;
};

enum class OptionKind { text, choice, number, flag };

/// The prefix of the environment variable of each option.
inline constexpr std::string_view option_environment_prefix = "STILLPOINT_";

/// One row of the table, for help texts and generated documents.
struct OptionRow {
    OptionKind kind;
    std::string_view name;          ///< as in the struct, e.g. "interval_ms"
    std::string_view default_text;  ///< e.g. "100"
    std::uint64_t minimum;          ///< numbers only
    std::uint64_t maximum;          ///< numbers only
    std::string_view words;         ///< choices only, separated by "|"
    std::string_view sentence;
    std::string_view engine = {};   ///< whose own option this is; empty: of all engines

    /// "STILLPOINT_INTERVAL_MS".
    [[nodiscard]] std::string environment_name() const;
    /// "--interval-ms".
    [[nodiscard]] std::string flag_name() const;
};

/// The value that a text says for this row. Errors: invalid_argument (out of bounds, or not among the words: states them).
[[nodiscard]] Result<OptionValue> parse_option_value(const OptionRow& row, std::string_view text);

/// The present value of an engine's own option.
[[nodiscard]] OptionValue own_option_value(const Options& options, const OptionRow& row);

/// As above, for the members that option_fields.inc makes: `name` is one of the engine's own rows, of that type.
template <class Value>
[[nodiscard]] Value own_option(const Options& options, std::span<const OptionRow> own_rows, std::string_view name)
{
    return std::get<Value>(own_option_value(options, *std::ranges::find(own_rows, name, &OptionRow::name)));
}

}  // namespace stillpoint

#pragma once
// Options: one struct, and tables of rows. options.inc has what does not depend on the engine; each engine's options.inc has its own
// options, and the engine's driver lists them. Environment, command line, sp_open's text and docs/guide/options.md come from the rows:
// adding a row adds the option everywhere.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "core/result.hpp"

namespace stillpoint {

/// Name of the engine that a new pool has where none is named: the first of the registry. Static text.
[[nodiscard]] std::string_view default_engine() noexcept;
/// Names of all engines, separated by "|". Static text.
[[nodiscard]] std::string_view engine_words();
/// The sentence of the option interval_ms, with every engine's own interval. Static text.
[[nodiscard]] std::string_view interval_sentence();

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
    /// What was set of the engines' own options, by name (static text): own_option().
    std::map<std::string_view, OptionValue> own;
    /// One bit for each row that somebody has set, by the order of the rows: is_given().
    std::uint64_t given = 0;
};

/// Whether that option was set, be it to its default. `name` is an option's.
[[nodiscard]] bool is_given(const Options& options, std::string_view name) noexcept;

enum class OptionKind { text, choice, number, flag };

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

/// All rows: the general ones, then each engine's own, in the order of their tables.
[[nodiscard]] std::span<const OptionRow> option_rows() noexcept;
/// `name` may be written with dashes or underscores. nullptr: there is no such option.
[[nodiscard]] const OptionRow* find_option(std::string_view name) noexcept;
/// The option whose name is nearest to `name`: for "did you mean".
[[nodiscard]] const OptionRow& nearest_option(std::string_view name) noexcept;

/// Sets one option from text. A flag takes 1, true, yes, on or 0, false, no, off.
/// Errors: invalid_argument (unknown name: suggests the nearest and lists all; a value out of bounds or not
///   among the words: states them). `options` is unchanged then.
[[nodiscard]] Result<void> parse_option(Options& options, std::string_view name,
                                        std::string_view value);

/// sp_open's text: "interval_ms=50 tracker=mprotect quiet"; a flag may stand alone.
/// Errors as parse_option; rows before the bad one are set.
[[nodiscard]] Result<void> parse_option_text(Options& options, std::string_view text);

/// Defaults, overridden by STILLPOINT_* variables. Errors as parse_option, naming the
/// variable. A variable that begins so and names no option is only warned of: another version may know it.
/// The defaults alone where the environment is foreign (os/environment.hpp).
[[nodiscard]] Result<Options> options_from_environment();

/// The present value of one option as text that parse_option accepts.
[[nodiscard]] std::string option_value(const Options& options, const OptionRow& row);

/// The present value of an engine's own option.
[[nodiscard]] OptionValue own_option_value(const Options& options, const OptionRow& row);

/// As above, for the members that option_fields.inc makes: `name` is a row of the engine's table, of that type.
template <class Value>
[[nodiscard]] Value own_option(const Options& options, std::string_view name)
{
    return std::get<Value>(own_option_value(options, *find_option(name)));
}

/// Checks that span several options (pool_size_mb <= pool_max_mb), also those of each engine. Errors: invalid_argument.
[[nodiscard]] Result<void> check_options(const Options& options);

/// Warns of options that only other engines have, where they are set to something else than their default.
void tell_of_idle_options(const Options& options, std::string_view engine);

}  // namespace stillpoint

#pragma once
// Options: one struct, one table (options.inc). Environment, command line, sp_open's text and
// docs/guide/options.md come from that table; adding a row adds the option everywhere.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace stillpoint {

/// The options of one session. A choice holds one of its row's words (static text); numbers lie within
/// their row's bounds. Start-up only: the text is a std::string.
struct Options {
#define OPTION_TEXT(name, initial, sentence) std::string name = initial;
#define OPTION_CHOICE(name, initial, words, sentence) std::string_view name = initial;
#define OPTION_NUMBER(name, initial, minimum, maximum, sentence) std::uint64_t name = initial;
#define OPTION_FLAG(name, initial, sentence) bool name = initial;
#include "runtime/options.inc"
#undef OPTION_TEXT
#undef OPTION_CHOICE
#undef OPTION_NUMBER
#undef OPTION_FLAG
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

    /// "STILLPOINT_INTERVAL_MS".
    [[nodiscard]] std::string environment_name() const;
    /// "--interval-ms".
    [[nodiscard]] std::string flag_name() const;
};

/// All rows, in the table's order.
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

/// Checks that span several options (pool_size_mb <= pool_max_mb). Errors: invalid_argument.
[[nodiscard]] Result<void> check_options(const Options& options);

}  // namespace stillpoint

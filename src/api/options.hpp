#pragma once
// The rows of all options, the engines' own among them, and what is made from them: environment, sp_open's text, values as text.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/result.hpp"
#include "runtime/options.hpp"

namespace stillpoint {

/// Names of all engines, separated by "|". Static text.
[[nodiscard]] std::string_view engine_words();
/// The sentence of the option interval_ms, with every engine's own interval. Static text.
[[nodiscard]] std::string_view interval_sentence();

/// All rows: the general ones, then each engine's own, in the order of their tables.
[[nodiscard]] std::span<const OptionRow> option_rows() noexcept;
/// `name` may be written with dashes or underscores. nullptr: there is no such option.
[[nodiscard]] const OptionRow* find_option(std::string_view name) noexcept;
/// The option whose name is nearest to `name`: for "did you mean".
[[nodiscard]] const OptionRow& nearest_option(std::string_view name) noexcept;

/// Sets one option from text. A flag takes 1, true, yes, on or 0, false, no, off.
/// Errors: invalid_argument (unknown name: suggests the nearest and lists all; a value out of bounds or not
///   among the words: states them). `options` is unchanged then.
[[nodiscard]] Result<void> parse_option(Options& options, std::string_view name, std::string_view value);

/// sp_open's text: "interval_ms=50 tracker=mprotect quiet"; a flag may stand alone.
/// Errors as parse_option; rows before the bad one are set.
[[nodiscard]] Result<void> parse_option_text(Options& options, std::string_view text);

/// The options of a call that opens `path`; `text`, in that form, may be nullptr. Errors as parse_option.
[[nodiscard]] Result<Options> options_of_call(const char* path, const char* text);

/// Defaults, overridden by STILLPOINT_* variables. Errors as parse_option, naming the
/// variable. A variable that begins so and names no option is passed over: another version may know it.
/// The defaults alone where the environment is foreign (os/environment.hpp).
[[nodiscard]] Result<Options> options_from_environment();
/// Warns of those that were passed over.
void warn_of_unknown_variables();

/// The present value of one option as text that parse_option accepts.
[[nodiscard]] std::string option_value(const Options& options, const OptionRow& row);

/// Whether that option was set, be it to its default. `name` is an option's.
[[nodiscard]] bool is_given(const Options& options, std::string_view name) noexcept;

/// Checks that span several options (pool_size_mb <= pool_max_mb), also those of each engine. Errors: invalid_argument.
[[nodiscard]] Result<void> check_options(const Options& options);

/// Warns of options that only other engines have, where they are set to something else than their default.
void tell_of_idle_options(const Options& options, std::string_view engine);

}  // namespace stillpoint

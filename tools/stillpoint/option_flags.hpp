#pragma once
// How the rows of api/options.hpp look on the command line.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/options.hpp"

namespace stillpoint::tool {

/// "--interval,--interval-ms": where the name ends with a unit there is a form without it.
[[nodiscard]] std::string flags_of(const OptionRow& row);

/// The word for an option's value in help and manual pages: NUMBER, WORD or PATH. A flag has no value.
[[nodiscard]] const char* value_word_of(const OptionRow& row);

/// The number that `text` means, in the unit that ends `option_name`: "250", "250ms", "2s", "1m" for
/// ..._ms; "100ns", "2us" for ..._ns; "64", "512M", "2G", "1T" for ..._mb. Empty: not a number, or
/// not a whole number of units.
[[nodiscard]] std::optional<std::uint64_t> parse_quantity(std::string_view option_name, std::string_view text);

}  // namespace stillpoint::tool

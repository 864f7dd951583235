#include "runtime/environment_options.hpp"

#include <algorithm>

#include "os/environment.hpp"

namespace stillpoint {

namespace {

// Without their sentences, some of which only the layer of sessions has.
#define OPTION_TEXT(name, initial, sentence)
#define OPTION_CHOICE(name, initial, words, sentence)
#define OPTION_NUMBER(name, initial, minimum, maximum, sentence) {OptionKind::number, #name, #initial, minimum, maximum, {}, {}},
#define OPTION_FLAG(name, initial, sentence) {OptionKind::flag, #name, #initial, 0, 0, {}, {}},
constexpr OptionRow rows[] = {
#include "runtime/options.inc"
};
#include "runtime/option_macros_end.inc"

}  // namespace

Result<OptionValue> option_of_environment(std::string_view name)
{
    const OptionRow& row = *std::ranges::find(rows, name, &OptionRow::name);
    const char* const text = os::environment_variable(row.environment_name().c_str());
    return parse_option_value(row, text != nullptr ? text : row.default_text);
}

}  // namespace stillpoint

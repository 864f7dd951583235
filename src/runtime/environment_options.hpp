#pragma once
// Options that the environment gives, for pools that the program itself opens: no session reads them there.

#include <string_view>

#include "core/result.hpp"
#include "runtime/options.hpp"

namespace stillpoint {

/// The value of the number or flag of options.inc that has that name: as the environment says it, or the option's default. Start-up only:
/// it allocates. Errors: invalid_argument.
[[nodiscard]] Result<OptionValue> option_of_environment(std::string_view name);

}  // namespace stillpoint

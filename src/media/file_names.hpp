#pragma once
// A finished file gets its name, durably.

#include <string>

#include "core/result.hpp"

namespace stillpoint {

/// ok if nothing has that name. Errors: pool_exists.
[[nodiscard]] Result<void> check_name_is_free(const std::string& path);
/// Gives the file `first_name` the name `path`. Errors: pool_exists (something else has got it meanwhile), io.
[[nodiscard]] Result<void> give_name(const std::string& first_name, const std::string& path);
/// As give_name(), in place of the file that has it, in one step.
[[nodiscard]] Result<void> replace_by(const std::string& first_name, const std::string& path);

}  // namespace stillpoint

#pragma once
// The words that errors have in JSON: a code for scripts, and the next step (docs/guide/json.md lists them).

#include <string_view>

#include "stillpoint/error.h"

namespace stillpoint::tool {

/// "pool_missing" for SP_E_POOL_MISSING.
[[nodiscard]] std::string_view code_word_for(sp_error code);

/// For a finding of the command itself: "usage" for 64.
[[nodiscard]] std::string_view code_word_for(int exit_code);

/// A sentence without a full stop.
[[nodiscard]] std::string_view next_step_for(int exit_code);

}  // namespace stillpoint::tool

#pragma once
// The values of this engine's own options (options.inc in this folder).

#include "runtime/options.hpp"

namespace stillpoint::nvthreads {

inline constexpr OptionRow own_option_rows[] = {
#include "runtime/option_rows.inc"
#include "engines/nvthreads/options.inc"
#include "runtime/option_macros_end.inc"
};

/// `OwnOptions{options}`; start-up only.
struct OwnOptions {
    const Options& given;
#include "runtime/option_fields.inc"
#include "engines/nvthreads/options.inc"
#include "runtime/option_macros_end.inc"
};

}  // namespace stillpoint::nvthreads

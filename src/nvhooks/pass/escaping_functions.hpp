#pragma once
// Precompiled functions that the program calls through pointers (*.unsafe of [Breeze 3.2.4]).

#include "descriptions.hpp"

namespace stillpoint::nvhooks {

/// Where the address of a described function is taken, it becomes the address of a function of this module that calls it, and
/// that the pass then instruments like any other. `reads`: also for functions that only read.
/// Functions with variable arguments cannot be wrapped: they are left as they are, and named in the result.
[[nodiscard]] llvm::SmallVector<llvm::Function*, 2> replace_escaping_functions(llvm::Module& module, const Descriptions& descriptions,
                                                                               bool reads);

}  // namespace stillpoint::nvhooks

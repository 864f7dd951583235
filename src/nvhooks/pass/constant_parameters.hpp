#pragma once
// Facts about parameters from the mangled name of a C++ function: those to constant objects are not written through.

#include "llvm/IR/InstrTypes.h"

namespace stillpoint::nvhooks {

/// Whether the callee's declaration promises, by `const`, to write nothing through the argument. False where the name does not
/// say, as for C.
[[nodiscard]] bool is_constant_parameter(const llvm::CallBase& call, unsigned argument);

}  // namespace stillpoint::nvhooks

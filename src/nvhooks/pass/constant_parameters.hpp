#pragma once
// What the mangled name of a C++ function says of its parameters: those to constant objects are not written through.

#include "llvm/IR/InstrTypes.h"

namespace stillpoint::nvhooks {

/// Whether the callee's declaration promises, by `const`, to write nothing through the argument. False where the name does not
/// say, as for C.
[[nodiscard]] bool is_constant_parameter(const llvm::CallBase &call, unsigned argument);

}  // namespace stillpoint::nvhooks

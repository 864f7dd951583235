#pragma once
// The record of an instrumented object, and how its functions are kept apart from those of other compilers.

#include "layer.hpp"
#include "llvm/IR/Module.h"

namespace stillpoint::nvhooks {

/// Adds the unit's nvhooks_module (nvhooks_abi.h).
void add_module_record(llvm::Module& module, const Layer& layer, unsigned hooks);

/// An inline function may be compiled into many objects, of which the linker keeps one copy: perhaps that of an object without
/// hooks. An instrumented copy gets a name of its own, so that only instrumented copies are merged.
void keep_apart(llvm::Function& function);

}  // namespace stillpoint::nvhooks

#pragma once
// -stillpoint-unknown-call: calls whose callee may write durable memory unseen [NVHooks 4.1.1].

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "scope.hpp"

namespace stillpoint::nvhooks {

/// Reports, as -stillpoint-unknown-call asks (off, record, warn, error), each call of `scope`'s function that is passed a
/// pointer that may be durable and whose callee is not described, or only in part; and such inline assembly. Indirect calls are
/// not reported, nor functions with a body in the module.
void report_unknown_calls(const FunctionScope& scope);

/// Reports as above that a transaction becomes irrevocable at `where`, which `function` has too. `clone`: the function with which it
/// would not; empty: none would help.
void report_irrevocable(const llvm::Instruction& where, llvm::Function& function, llvm::StringRef clone, const llvm::Twine& reason);

/// With `record`: notes which functions the module defines, with hooks in them. Calls from other units are known to be harmless then.
void record_functions(llvm::Module& module);

/// Does what report_unknown_calls does for functions whose address is taken and that could not be wrapped.
void report_unwrapped(llvm::ArrayRef<llvm::Function*> functions);

}  // namespace stillpoint::nvhooks

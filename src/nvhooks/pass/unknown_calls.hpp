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

/// Whether calls are noted in the object.
[[nodiscard]] bool records_unknown_calls();
/// "file:line:column", or the function and its file where there is no debug information.
[[nodiscard]] std::string place_in_source(const llvm::Function& function, const llvm::DebugLoc& where);
/// Reports, as -stillpoint-unknown-call asks (warn, error), that a transaction becomes irrevocable at `where`, in a clone of `function`.
void report_irrevocable(const llvm::Instruction& where, llvm::Function& function, const llvm::Twine& reason);
/// Notes strings for the command that links (NVHOOKS_IRREVOCABLE_SECTION).
void record_irrevocable(llvm::Module& module, llvm::ArrayRef<std::string> entries);

/// With `record`: notes which functions the module defines, with hooks in them. Calls from other units are known to be harmless then.
void record_functions(llvm::Module& module);

/// Does what report_unknown_calls does for functions whose address is taken and that could not be wrapped.
void report_unwrapped(llvm::ArrayRef<llvm::Function*> functions);

}  // namespace stillpoint::nvhooks

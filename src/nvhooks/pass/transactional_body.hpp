#pragma once
// The body of one transactional clone: loads, stores, copies and calls are replaced.

#include <functional>

#include "configuration.hpp"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"

namespace stillpoint::nvhooks {

struct CalleeChoice {
    enum class Kind { as_it_is, clone, clone_or_irrevocable };
    Kind kind = Kind::as_it_is;
    llvm::Constant* clone = nullptr;
};

struct ClonePlan {
    /// How `callee` is called inside a transaction. May make a clone.
    std::function<CalleeChoice(const llvm::CallBase& call, llvm::Function& callee)> choose;
    /// The transaction becomes irrevocable at the instruction; `callee` is the function that is called as it is, or nullptr.
    std::function<void(const llvm::Instruction& where, const llvm::Function* callee, llvm::StringRef reason)> note_irrevocable;
};

/// Rewrites `clone`. Returns how many accesses and calls were replaced.
unsigned rewrite_as_transactional(llvm::Function& clone, const ClonePlan& plan);

}  // namespace stillpoint::nvhooks

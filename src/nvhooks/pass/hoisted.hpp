#pragma once
// Which accesses have their hooks already, from the early pass.
//
// Told by access groups: of all metadata, vectorisation and unrolling carry only those along as wanted. They drop a group
// where an access that has it is merged with one that has not. A group that got lost costs a second hook, nothing else.

#include "llvm/IR/Instruction.h"
#include "site.hpp"

namespace stillpoint::nvhooks {

/// The hook of this kind was made elsewhere.
void note_hoisted(llvm::Instruction& access, SiteKind kind);
[[nodiscard]] bool is_hoisted(const llvm::Instruction& access, SiteKind kind);

}  // namespace stillpoint::nvhooks

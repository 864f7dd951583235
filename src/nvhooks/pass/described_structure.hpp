#pragma once
// One structure's description from its debug information.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "llvm/ADT/StringRef.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "stillpoint/typed_fields.h"

namespace stillpoint::nvhooks {

/// Entries that describe a type, those of its nested types first; each type begins with its own entry.
struct StructureDescription {
    std::vector<nvm_field> entries;
    std::vector<std::string> errors;  ///< each with the place in the source; not empty: it cannot be described
};

/// `hints`: what the program says of the type (NVM_TAGGED and others).
[[nodiscard]] StructureDescription describe_structure(llvm::StringRef name, const llvm::DIType* type, const std::vector<nvm_field>& hints);

}  // namespace stillpoint::nvhooks

#pragma once
// Descriptions as YAML files and as the text of attributes.

#include <string>

#include "descriptions.hpp"
#include "llvm/Support/MemoryBuffer.h"

namespace stillpoint::nvhooks {

/// Adds what `file`, which must be YAML (check_syntax), says to `table`. Errors: "path:line:column: error: ..." for each thing wrong.
[[nodiscard]] llvm::Error read_descriptions(const llvm::MemoryBuffer& file, llvm::StringRef path, DescriptionTable& table);

/// Adds what an attribute says: "nvm_write:POINTER:SIZE[:AT-MOST]", "nvm_read:...", "nvm_harmless", "nvm_keeps_fase". Errors: what is
/// wrong with the text. False: the attribute is not one of these.
[[nodiscard]] llvm::Expected<bool> read_attribute(llvm::StringRef text, FunctionDescription& function);

}  // namespace stillpoint::nvhooks

#pragma once
// The facts that a scanf format says of the pointers that follow it.

#include "descriptions.hpp"

namespace stillpoint::nvhooks {

/// Appends what each conversion of `format` writes; `first` is the index of the first pointer. False if some conversion
/// writes a length that the format does not bound (%s without a width), or names its argument by position.
[[nodiscard]] bool add_scanf_pointers(llvm::StringRef format, unsigned first, llvm::SmallVectorImpl<MemoryEffect>& effects);

}  // namespace stillpoint::nvhooks

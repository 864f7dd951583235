#pragma once
// Types of members as debug information has them.

#include <cstdint>
#include <vector>

#include "llvm/IR/DebugInfoMetadata.h"

namespace stillpoint::nvhooks {

/// A member's type without its names and qualifiers, arrays resolved.
struct Shape {
    const llvm::DIType* element = nullptr;  ///< null: void
    std::uint64_t count = 1;
    bool is_array = false;
    bool is_open = false;  ///< an array without a size
    bool is_weak = false;  ///< an nvm_weak
};

/// The type below typedefs and qualifiers; null: void. `is_weak` becomes true where one of the names is nvm_weak.
[[nodiscard]] const llvm::DIType* without_names(const llvm::DIType* type, bool& is_weak);
[[nodiscard]] Shape shape_of(const llvm::DIType* type);
/// A structure, class or union; else null.
[[nodiscard]] const llvm::DICompositeType* as_record(const llvm::DIType* type);
[[nodiscard]] bool is_union(const llvm::DICompositeType& record);
/// Members with bytes of their own, base classes too.
[[nodiscard]] std::vector<const llvm::DIDerivedType*> members_of(const llvm::DICompositeType& record);
[[nodiscard]] bool is_pointer(const llvm::DIType* type);

}  // namespace stillpoint::nvhooks

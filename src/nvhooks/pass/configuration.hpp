#pragma once
// The layer that a module is compiled for, ready for use.

#include "layer.hpp"
#include "descriptions.hpp"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace stillpoint::nvhooks {

/// A layer with the descriptions that it names.
struct Configuration {
    Layer layer;
    Descriptions descriptions;
    llvm::StringSet<> keeps_fase;
    llvm::StringMap<std::optional<SizeExpression>> allocators;

    [[nodiscard]] bool marks_cards() const { return layer.marks == Marks::cards; }
    [[nodiscard]] bool is_allocator(const llvm::CallBase& call) const;
};

/// The configuration that -stillpoint-runtime names, and that of the module's attributes. Errors: each mistake in a file, with line and
/// column; no layer given.
[[nodiscard]] llvm::Expected<Configuration> configuration_of(const llvm::Module& module);

}  // namespace stillpoint::nvhooks

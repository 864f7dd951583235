#pragma once
// Functions of libstdc++ that are precompiled and write what no description can name: their bodies are in the plugin
// (nvhooks/bodies), and take the place of the declarations, so that they are instrumented like the program.

#include "llvm/ADT/StringRef.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"

namespace stillpoint::nvhooks {

/// The prefix of the names of bodies; the symbol that a body stands for follows.
inline constexpr llvm::StringLiteral body_prefix = "nvhooks.body.";

/// Defines the bodies that the module calls or takes the address of, and makes it use them. Error: the bitcode in the
/// plugin cannot be read by the LLVM that loaded it.
[[nodiscard]] llvm::Error use_library_bodies(llvm::Module& module);

}  // namespace stillpoint::nvhooks

#pragma once
// `stillpoint cc` and `stillpoint c++`: Clang with the plugin, its configuration and the runtime added.

#include <optional>
#include <string>
#include <vector>

#include "compiler_clang.hpp"

namespace stillpoint::tool {

/// Which compiler a command line asks for: `stillpoint cc …`, `stillpoint c++ …`, or a first word (argv[0]) that is
/// stillpoint-cc or stillpoint-c++, the links to this command. None: it is something else.
struct CompilerCall {
    Language language = Language::c;
    std::vector<std::string> words;  ///< what is for the compiler
};
[[nodiscard]] std::optional<CompilerCall> compiler_call(int argc, char** argv);

/// Becomes Clang by exec; returns an exit code only if that cannot be, or if one of the wrapper's own options asks
/// for something to be printed. Every word belongs to the compiler, so CLI11 sees none of them.
[[nodiscard]] int run_compiler(const CompilerCall& call);

}  // namespace stillpoint::tool

#pragma once
// Which Clang compiles: the one whose version the plugin was built for.

#include <string>

#include <tl/expected.hpp>

#include "installation.hpp"
#include "program.hpp"

namespace stillpoint::tool {

enum class Language { c, cpp };

struct CompilerChoice {
    std::string clang;    ///< path
    bool is_for_cpp;      ///< it is a clang++; else C++ needs --driver-mode=g++
    Plugin plugin;
};

/// The plugin with the newest version for which there is a Clang: clang-MAJOR in PATH or in LLVM's own folder, or a `clang`
/// of that version. STILLPOINT_CLANG (for C++ first STILLPOINT_CLANGXX) names another one, whose version is asked
/// for, and must be a plugin's.
[[nodiscard]] tl::expected<CompilerChoice, Refusal> choose_clang(Language language);

}  // namespace stillpoint::tool

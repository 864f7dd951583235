#pragma once
// The adaptation layer that a program is compiled for: its folder, its configuration, its link flags.

#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "program.hpp"

namespace stillpoint::tool {

struct CompilerLayer {
    std::string folder;         ///< absolute
    std::string configuration;  ///< absolute path of its YAML file, which can be read
};

/// `runtime` is the name of a layer of this Stillpoint; or, with a '/' or ending with .yaml, the path of a
/// configuration, or of the folder that holds a layer.yaml. Only the plugin reads what is in it.
[[nodiscard]] tl::expected<CompilerLayer, Refusal> find_layer(const std::string& runtime);

/// The words of the layer's file link.flags, {lib} and {layer} replaced: one flag a line; empty lines, and lines that
/// begin with '#', are skipped. A layer without the file adds nothing.
[[nodiscard]] tl::expected<std::vector<std::string>, Refusal> link_flags(const CompilerLayer& layer);

/// The layer's programs may ask the compiler to describe their types (describe-types).
[[nodiscard]] bool describes_types(const CompilerLayer& layer);

/// The files that change what is compiled: the configuration, and the files of descriptions that it names.
[[nodiscard]] std::vector<std::string> files_of(const CompilerLayer& layer);

}  // namespace stillpoint::tool

#pragma once
// The requests of a compiler's command line, as far as the wrapper must know: its own options, and whether
// there will be a link. Everything else is passed on as it was written.

#include <string>
#include <vector>

namespace stillpoint::tool {

struct CompilerArguments {
    /// The user's words without the wrapper's own. A response file that holds own ones is written out in place.
    std::vector<std::string> words;
    std::string runtime;       ///< of --runtime= or --lint; empty: neither was given
    std::string linted_runtime;  ///< of the --runtime= before --lint
    std::string unknown_call;  ///< warn, off or error, of -W…stillpoint-unknown-call; empty: not given
    bool show = false;         ///< --stillpoint-show: print the command, do not run it
    bool list_files = false;   ///< --stillpoint-files: print the files that the compiler's output depends on
    bool help = false;         ///< --stillpoint-help
    std::string error;         ///< what is wrong with an own option; empty: nothing
    bool links = false;        ///< the link editor will run, and make a program or a shared library
    std::string output;                 ///< of -o; empty: not given
    std::vector<std::string> libraries; ///< folders of -L
    bool names_a_language = false;  ///< -x: files that the wrapper adds must be taken out of it
    bool is_frontend = false;       ///< -cc1, -cc1as: not a compiler's command line
};

/// Reads the words after the compiler's name. Response files (@file) are read as Clang reads them: GNU quoting,
/// nested, and a file that is missing is a word like any other.
[[nodiscard]] CompilerArguments read_compiler_arguments(const std::vector<std::string>& words);

}  // namespace stillpoint::tool

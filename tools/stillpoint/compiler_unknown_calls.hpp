#pragma once
// After a link: which calls of the program may write durable memory without hooks (-Wstillpoint-unknown-call). A unit alone cannot tell,
// since another one may define what it calls, with hooks.

#include <string>
#include <vector>

namespace stillpoint::tool {

/// Also what makes transactions irrevocable: the units of a layer with transactions record that.
struct UnknownCall {
    std::string callee;   ///< empty: the text says it all
    std::string library;  ///< that defines it; empty: the program itself does, or it is unknown
    std::string text;     ///< "'inflate' has no description: what it writes through argument 1 has no hooks"
    std::vector<std::string> places;
    bool is_irrevocable = false;
};

/// The unknown calls that the linked file `output` records, less those that are answered by functions with hooks. `folders` are
/// searched for its libraries before the system's own. Sorted by the callee.
[[nodiscard]] std::vector<UnknownCall> unknown_calls_in(const std::string& output, const std::vector<std::string>& folders);

/// The warnings, or errors, for the user; empty where there are none.
[[nodiscard]] std::string text_of_unknown_calls(const std::vector<UnknownCall>& calls, bool as_errors);

}  // namespace stillpoint::tool

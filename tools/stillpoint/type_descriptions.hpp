#pragma once
// The types of a program's durable data, in the text that pools keep (runtime/type_text.hpp).

#include <map>
#include <string>

namespace stillpoint::tool {

/// The type of each object that the program names by SP_ROOT: by handle, as the source spells it.
[[nodiscard]] std::map<std::string, std::string> stated_root_types(const std::string& program);

/// Types of the objects of SP_ROOT and of SP_PERSISTENT variables, as the program's debug information has them, with all structures that
/// they lead to. Empty: the program has none, or no debug information, or more than an environment variable takes.
[[nodiscard]] std::string describe_types(const std::string& program);

}  // namespace stillpoint::tool

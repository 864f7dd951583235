#pragma once
// The types of a program's durable data, in the text that pools keep (runtime/type_text.hpp).

#include <map>
#include <string>

namespace stillpoint::tool {

/// The type of each object that the program names by SP_ROOT: by handle, as the source spells it.
[[nodiscard]] std::map<std::string, std::string> stated_root_types(const std::string& program);

/// Puts into the environment, for the library, the types of the objects of SP_ROOT, of classes whose objects the headers for C++ ask for by
/// name, and of SP_PERSISTENT variables, as the program's debug information has them, with all structures that they lead to. Nothing where
/// the program has none, or no debug information, or more than an environment variable takes; nor where `program` is empty.
void state_types(const std::string& program);

}  // namespace stillpoint::tool

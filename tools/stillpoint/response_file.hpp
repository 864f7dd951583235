#pragma once
// Response files (@file on a compiler's command line), read as GCC and Clang read them.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stillpoint::tool {

/// The words of the file; empty if it cannot be read.
[[nodiscard]] std::optional<std::vector<std::string>> words_of_response_file(const std::string& path);

/// A path under which a program that this process becomes by exec can read `words` as a response file. It lies
/// in memory and is gone with the processes that have it open. Empty: the system has no memory for it.
[[nodiscard]] std::string response_file_in_memory(const std::vector<std::string>& words);

}  // namespace stillpoint::tool

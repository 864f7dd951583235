#pragma once
// A command line given as one text, cut into words, and words put together again for a person to paste.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stillpoint::tool {

/// Cuts at spaces outside quotes, as a shell does; quotes and backslashes are taken away and nothing is
/// expanded. Empty: a quote is not closed, or the text ends with a backslash.
[[nodiscard]] std::optional<std::vector<std::string>> words_of(std::string_view text);

/// The words as a shell would need them to be typed.
[[nodiscard]] std::string shell_text(const std::vector<std::string>& words);

}  // namespace stillpoint::tool

#pragma once
// UTF-8 in texts that come from outside: paths, names.

#include <cstddef>
#include <string_view>

namespace stillpoint::tool {

/// How many bytes the UTF-8 sequence has that `text` begins with; 0: none that is valid.
[[nodiscard]] std::size_t sequence_bytes(std::string_view text);

}  // namespace stillpoint::tool

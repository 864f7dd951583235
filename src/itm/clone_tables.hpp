#pragma once
// Which function has a clone that a compiler has instrumented.

namespace stillpoint::itm {

/// nullptr: none is known.
[[nodiscard]] void* clone_of(void* function);

}  // namespace stillpoint::itm

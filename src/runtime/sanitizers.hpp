#pragma once
// Programs that were compiled with a sanitizer that does not go with this library.

#include "core/result.hpp"

namespace stillpoint {

/// ThreadSanitizer and MemorySanitizer keep the window's addresses for themselves: a program under one of them would be
/// ended by its own mmap. Errors: unsupported, with what to do.
[[nodiscard]] Result<void> check_sanitizers();

}  // namespace stillpoint

#pragma once
// Starts a program that is not a child of this process: no wait() of the program that the library lives in ever sees it.

#include <span>

namespace stillpoint::os {

struct DetachedProgram {
    const char* path;
    char* const* arguments;    ///< with the name first and nullptr last
    char* const* environment;  ///< nullptr last
    std::span<const int> descriptors;  ///< these are its descriptors 3 and up, and it has no others but 0 to 2, which are /dev/null
};

/// 0 when it runs, or the errno. It has its own session, no signal blocked, / as its folder. No malloc; one thread at a time.
[[nodiscard]] int start_detached(const DetachedProgram& program) noexcept;

}  // namespace stillpoint::os

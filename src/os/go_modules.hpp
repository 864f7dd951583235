#pragma once
// Modules that Go has built. Its runtime makes system calls, and sleeps in futexes, without the C library.

#include <cstddef>

namespace stillpoint::os {

struct GoModules {
    std::size_t count;
    char first[256];  ///< its path, cut where it is longer
};

/// Which of the modules that are loaded now hold code of Go; found by the note that Go's linker leaves in each.
[[nodiscard]] GoModules loaded_go_modules() noexcept;

}  // namespace stillpoint::os

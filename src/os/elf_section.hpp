#pragma once
// Finds a named section in the program and the libraries it was started with.

#include <cstddef>
#include <cstdint>

namespace stillpoint::os {

/// A writable section of a loaded module.
struct LoadedSection {
    char module_name[48];        ///< base name of the file, cut where it is longer
    std::byte* memory;
    std::size_t size;
    std::uint64_t layout_hash;   ///< over names, offsets and sizes of the symbols in it; of the build id
                                 ///< where the module is stripped
};

/// Fills `found` with the sections called `name` of all modules loaded now; returns their number (at most `capacity`).
/// A module whose file cannot be read is left out. Start-up only: reads files.
[[nodiscard]] std::size_t find_sections(const char* name, LoadedSection* found, std::size_t capacity);

}  // namespace stillpoint::os

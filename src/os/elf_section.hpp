#pragma once
// Finds a named section in the program and the libraries it was started with.

#include <cstddef>
#include <cstdint>

namespace stillpoint::os {

/// A section of a loaded module.
struct LoadedSection {
    char module_name[48];        ///< base name of the file, cut where it is longer
    std::byte* memory;
    std::size_t size;
    std::uint64_t layout_hash;   ///< over names, offsets and sizes of the symbols in it; of the build id
                                 ///< where the module is stripped. 0 for a section that is not writable
    const char* path;            ///< of the module's file; visit_sections only, during the visit
    std::uint64_t load_offset;   ///< from an address in the file to one in memory
};

/// Fills `found` with the writable sections called `name` of all modules loaded now; returns their number (at most `capacity`).
/// A module whose file cannot be read is left out. Start-up only: reads files.
[[nodiscard]] std::size_t find_sections(const char* name, LoadedSection* found, std::size_t capacity);

/// Calls `visit` for each section called `name`, writable or not, of all modules loaded now, until it returns false. The
/// same limits.
void visit_sections(const char* name, bool (*visit)(void* context, const LoadedSection& section), void* context);

}  // namespace stillpoint::os

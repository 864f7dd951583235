#pragma once
// Which function of which loaded object an instruction belongs to.

#include <cstddef>
#include <cstdint>

namespace stillpoint::os {

/// A place in code, for messages. Names are cut where they are longer.
struct CodeLocation {
    char module_name[48] = "?";          ///< base name of the program or library
    char function[160] = "";             ///< as the linker knows it; "" where the object was stripped
    std::uintptr_t function_begin = 0;   ///< 0 where the function is not known
    std::uint64_t module_offset = 0;     ///< of the instruction, as addr2line takes it
};

/// Looks `instruction` up in the symbols of the object's file, also the local ones, which dladdr does not see. Reads a file;
/// takes the loader's lock; no malloc.
[[nodiscard]] CodeLocation locate_code(const void* instruction) noexcept;

}  // namespace stillpoint::os

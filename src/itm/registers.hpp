#pragma once
// Registers: those that a called function leaves as they were. They are kept at the beginning of a transaction, so that the beginning can
// return again. registers.cpp has the assembly.

#include <cstddef>
#include <cstdint>

namespace stillpoint::itm {

#if defined(__x86_64__)
struct Registers {
    std::uint64_t stack;  ///< of the caller, after the return: the frames of the functions that it calls lie below
    std::uint64_t program_counter;
    std::uint64_t rbx, rbp, r12, r13, r14, r15;
};
static_assert(offsetof(Registers, r15) == 56 && sizeof(Registers) == 64, "registers.cpp has these numbers");
#elif defined(__aarch64__)
struct Registers {
    std::uint64_t stack;
    std::uint64_t program_counter;  ///< x30
    std::uint64_t x19_to_x29[11];
    std::uint64_t unused;
    double d8_to_d15[8];
};
static_assert(offsetof(Registers, d8_to_d15) == 112 && sizeof(Registers) == 176, "registers.cpp has these numbers");
#endif

}  // namespace stillpoint::itm

/// Returns from the _ITM_beginTransaction that has kept `registers`, once more, with these actions.
extern "C" [[noreturn, gnu::visibility("hidden")]] void stillpoint_itm_return_again(std::uint32_t actions,
                                                                                    const stillpoint::itm::Registers* registers);

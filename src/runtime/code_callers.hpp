#pragma once
// Which code made a store that faulted: its callers, and their names for a message.

#include <array>
#include <cstddef>
#include <string_view>

#include "os/code_location.hpp"

namespace stillpoint {

/// An instruction and its callers, the innermost first; nullptr: there are no more.
using Callers = std::array<const void*, 6>;

/// To be called before the first callers_from() in a handler: the unwinder loads a library at its first use.
void prepare_callers() noexcept;
/// In a handler of a fault of `instruction`; nullptr: no code, and no callers.
[[nodiscard]] Callers callers_from(const void* instruction) noexcept;

/// The libraries that are named by their caller in messages: libc, those of C++, and this one.
[[nodiscard]] bool is_language_runtime(std::string_view module) noexcept;

/// The innermost of the callers that is not of a language's runtime; the instruction itself if all are.
[[nodiscard]] os::CodeLocation blamed_code(const Callers& callers) noexcept;

/// "function in program (+0x1234)", and the library that it calls if `first`, the instruction, lies in one. Not in a handler that may have
/// interrupted malloc.
struct CodeText {
    CodeText(const os::CodeLocation& first, const os::CodeLocation& blamed) noexcept;
    [[nodiscard]] std::string_view view() const noexcept { return {text, length}; }

    char text[256];
    std::size_t length;
};

}  // namespace stillpoint

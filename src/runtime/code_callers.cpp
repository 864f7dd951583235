#include "runtime/code_callers.hpp"

#include <algorithm>
#include <cstdlib>
#include <cxxabi.h>
#include <execinfo.h>
#include <fmt/core.h>
#include <iterator>
#include <memory>

namespace stillpoint {

void prepare_callers() noexcept
{
    void* first[1];
    backtrace(first, 1);
}

Callers callers_from(const void* instruction) noexcept
{
    constexpr int depth_max = 24;  // The handler's own frames come first.
    void* frames[depth_max];
    const int depth = instruction != nullptr ? backtrace(frames, depth_max) : 0;
    Callers callers{instruction};
    const auto* const at = std::find(frames, frames + depth, instruction);
    std::copy_n(at, std::min<std::ptrdiff_t>(frames + depth - at, static_cast<std::ptrdiff_t>(callers.size())), callers.begin());
    return callers;
}

bool is_language_runtime(std::string_view module) noexcept
{
    constexpr std::string_view beginnings[] = {"libc.", "libc-", "libstdc++.", "libc++.", "libpthread", "ld-", "libstillpoint."};
    return std::any_of(std::begin(beginnings), std::end(beginnings),
                       [module](std::string_view beginning) { return module.starts_with(beginning); });
}

os::CodeLocation blamed_code(const Callers& callers) noexcept
{
    const os::CodeLocation first = os::locate_code(callers[0]);
    os::CodeLocation blamed = first;
    for (std::size_t i = 1; i < callers.size() && callers[i] != nullptr && is_language_runtime(blamed.module_name); ++i) {
        // A return address may be the first of the next function.
        blamed = os::locate_code(static_cast<const std::byte*>(callers[i]) - 1);
    }
    return is_language_runtime(blamed.module_name) ? first : blamed;
}

CodeText::CodeText(const os::CodeLocation& first, const os::CodeLocation& blamed) noexcept
{
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> demangled(abi::__cxa_demangle(blamed.function, nullptr, nullptr, &status),
                                                                &std::free);
    const char* const name = demangled != nullptr ? demangled.get() : blamed.function[0] != '\0' ? blamed.function : "an unnamed function";
    const auto end = blamed.function_begin == first.function_begin
                         ? fmt::format_to_n(text, sizeof text, "{} in {} (+{:#x})", name, blamed.module_name, blamed.module_offset)
                         : fmt::format_to_n(text, sizeof text, "{} in {} (+{:#x}), by a call into {},", name, blamed.module_name,
                                            blamed.module_offset, first.module_name);
    length = static_cast<std::size_t>(end.out - text);
}

}  // namespace stillpoint

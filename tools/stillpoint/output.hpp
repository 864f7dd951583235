#pragma once
// Text for people and scripts, on top of fmt's core (the whole of fmt costs seconds in each file).

#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "core/printable_text.hpp"

namespace stillpoint::tool {

template <class... Args>
[[nodiscard]] std::string text_of(fmt::format_string<Args...> format, Args&&... args)
{
    std::string text;
    fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
    return text;
}

/// A text from a pool, or from another process: nothing in it commands the terminal.
[[nodiscard]] inline std::string printable(std::string_view from)
{
    std::string text(4 * from.size(), '\0');
    text.resize(copy_printable(from, text));
    return text;
}

/// To standard output.
template <class... Args>
void print(fmt::format_string<Args...> format, Args&&... args)
{
    std::fputs(text_of(format, std::forward<Args>(args)...).c_str(), stdout);
}

/// To standard error.
template <class... Args>
void print_error(fmt::format_string<Args...> format, Args&&... args)
{
    std::fputs(text_of(format, std::forward<Args>(args)...).c_str(), stderr);
}

}  // namespace stillpoint::tool

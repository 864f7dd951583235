#pragma once
// Messages to the user: one line each on standard error, by one write(), with no malloc, so
// that they can be made inside interposed calls. Every line begins with "stillpoint: ".

#include <string_view>

#include <fmt/core.h>

namespace stillpoint::os {

/// Errors only after set_quiet(true).
void set_quiet(bool quiet) noexcept;

enum class Severity { note, warning, error };

/// Writes "stillpoint: [warning: |error: ]text\n". Preserves errno.
void write_line(Severity severity, std::string_view text) noexcept;

template <class... Args>
void log(Severity severity, fmt::format_string<Args...> format, Args&&... args) noexcept
{
    char text[1024];
    const auto end = fmt::format_to_n(text, sizeof text, format, std::forward<Args>(args)...);
    write_line(severity, {text, static_cast<std::size_t>(end.out - text)});
}

}  // namespace stillpoint::os

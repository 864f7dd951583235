#pragma once
// Messages to the user: one line each on standard error, by one write(), with no malloc, so
// that they can be made inside interposed calls. Every line begins with "stillpoint: ".

#include <cstdint>
#include <string_view>

#include <fmt/core.h>

namespace stillpoint::os {

enum class Severity : std::uint8_t { debug, note, warning, error, none };

/// Lines below `least` are not told; `none`: no line is. Before the first call: note.
void set_least_severity(Severity least) noexcept;
/// Whether lines of this severity are told: spares the work for one that is not.
[[nodiscard]] bool is_told(Severity severity) noexcept;

/// Tells "text" (printable, without a newline) elsewhere. False: the line goes to standard error, too.
using LineTaker = bool (*)(Severity severity, std::string_view text) noexcept;
/// nullptr: all lines go to standard error alone.
void set_line_taker(LineTaker taker) noexcept;

/// Writes "stillpoint: [debug: |warning: |error: ]text\n". Preserves errno.
void write_line(Severity severity, std::string_view text) noexcept;

template <class... Args>
void log(Severity severity, fmt::format_string<Args...> format, Args&&... args) noexcept
{
    if (!is_told(severity)) {
        return;
    }
    char text[1024];
    const auto end = fmt::format_to_n(text, sizeof text, format, std::forward<Args>(args)...);
    write_line(severity, {text, static_cast<std::size_t>(end.out - text)});
}

}  // namespace stillpoint::os

#include "os/log.hpp"

#include <atomic>
#include <cerrno>
#include <sys/uio.h>
#include <unistd.h>

#include "os/file_size_limit.hpp"

#include "core/printable_text.hpp"

namespace stillpoint::os {

namespace {

constinit std::atomic<Severity> least_severity{Severity::note};
constinit std::atomic<LineTaker> line_taker{nullptr};

std::string_view prefix_of(Severity severity) noexcept
{
    switch (severity) {
    case Severity::debug: return "stillpoint: debug: ";
    case Severity::warning: return "stillpoint: warning: ";
    case Severity::error: return "stillpoint: error: ";
    case Severity::note:
    case Severity::none: break;
    }
    return "stillpoint: ";
}

}  // namespace

void set_least_severity(Severity least) noexcept { least_severity.store(least, std::memory_order_relaxed); }

bool is_told(Severity severity) noexcept { return severity >= least_severity.load(std::memory_order_relaxed); }

void set_line_taker(LineTaker taker) noexcept { line_taker.store(taker, std::memory_order_release); }

void write_line(Severity severity, std::string_view text) noexcept
{
    if (!is_told(severity)) {
        return;
    }
    const int saved_errno = errno;
    const std::string_view prefix = prefix_of(severity);
    char shown[2048];
    const std::size_t size = copy_printable(text, shown);
    if (const LineTaker taker = line_taker.load(std::memory_order_acquire); taker != nullptr && taker(severity, {shown, size})) {
        errno = saved_errno;
        return;
    }
    char newline = '\n';
    const iovec parts[] = {
        {const_cast<char*>(prefix.data()), prefix.size()},
        {shown, size},
        {&newline, 1},
    };
    const FileSizeSignalHeld held;  // Standard error may be a file that has reached its limit.
    // A message that cannot be written has nowhere else to go.
    [[maybe_unused]] const ssize_t written = writev(STDERR_FILENO, parts, 3);
    errno = saved_errno;
}

}  // namespace stillpoint::os

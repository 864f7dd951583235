#include "os/log.hpp"

#include <atomic>
#include <cerrno>
#include <sys/uio.h>
#include <unistd.h>

#include "os/file_size_limit.hpp"

#include "core/printable_text.hpp"

namespace stillpoint::os {

namespace {
std::atomic<bool> quiet_mode{false};
}

void set_quiet(bool quiet) noexcept { quiet_mode.store(quiet, std::memory_order_relaxed); }

void write_line(Severity severity, std::string_view text) noexcept
{
    if (severity != Severity::error && quiet_mode.load(std::memory_order_relaxed)) {
        return;
    }
    const int saved_errno = errno;
    std::string_view prefix = "stillpoint: ";
    if (severity == Severity::warning) {
        prefix = "stillpoint: warning: ";
    } else if (severity == Severity::error) {
        prefix = "stillpoint: error: ";
    }
    char shown[2048];
    const std::size_t size = copy_printable(text, shown);
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

#include "os/tracing_process.hpp"

#include <algorithm>
#include <charconv>
#include <fcntl.h>
#include <string_view>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

#include "os/own_descriptors.hpp"

namespace stillpoint::os {

TracingProcess::~TracingProcess()
{
    if (status_ >= 0) {
        close_descriptor(status_);
    }
}

int TracingProcess::number() noexcept
{
    if (!std::exchange(opened_, true)) {
        status_ = claim_descriptor(static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/proc/self/status", O_RDONLY | O_CLOEXEC)));
    }
    char text[1024];  // The line is one of the first ten.
    const long got = status_ >= 0 ? syscall(SYS_pread64, status_, text, sizeof text, 0) : 0;
    std::string_view status(text, static_cast<std::size_t>(std::max(got, 0L)));
    constexpr std::string_view name = "\nTracerPid:\t";
    const auto line = status.find(name);
    int number = 0;
    if (line != status.npos) {
        status.remove_prefix(line + name.size());
        std::from_chars(status.data(), status.data() + status.size(), number);
    }
    return number;
}

}  // namespace stillpoint::os

#include "os/file_size_limit.hpp"

#include <cerrno>
#include <csignal>
#include <ctime>
#include <sys/syscall.h>
#include <unistd.h>

namespace stillpoint::os {

namespace {

constexpr std::uint64_t size_signal = std::uint64_t{1} << (SIGXFSZ - 1);

}  // namespace

// System calls and not libc's functions: the interposer has those that change masks.

FileSizeSignalHeld::FileSizeSignalHeld() noexcept
{
    const int saved_errno = errno;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &size_signal, &mask_before_, sizeof mask_before_);
    if ((mask_before_ & size_signal) != 0) {  // Otherwise it would have been delivered.
        std::uint64_t pending = 0;
        syscall(SYS_rt_sigpending, &pending, sizeof pending);
        was_pending_ = (pending & size_signal) != 0;
    }
    errno = saved_errno;
}

FileSizeSignalHeld::~FileSizeSignalHeld()
{
    const int saved_errno = errno;
    if (!was_pending_) {
        const timespec at_once{};
        while (syscall(SYS_rt_sigtimedwait, &size_signal, nullptr, &at_once, sizeof size_signal) < 0 && errno == EINTR) {
        }
    }
    if ((mask_before_ & size_signal) == 0) {
        syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask_before_, nullptr, sizeof mask_before_);
    }
    errno = saved_errno;
}

}  // namespace stillpoint::os

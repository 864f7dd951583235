#include "os/paused_process.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/clock.hpp"

namespace stillpoint::os {

namespace {

constexpr timespec pause_between_looks{0, 200'000};
constexpr std::uint64_t standing_wait_max_ns = 2'000'000'000;

/// The state letter of /proc/PID/task/TID/stat: "TID (name) S ...", where the name may hold anything.
char state_of_thread(int folder, const char* thread) noexcept
{
    char path[64];
    std::snprintf(path, sizeof path, "%.20s/stat", thread);
    const Descriptor file{openat(folder, path, O_RDONLY | O_CLOEXEC)};
    char text[256] = {};
    if (!file.valid() || read(file.get(), text, sizeof text - 1) <= 0) {
        return '\0';  // The thread has ended.
    }
    const char* const after_name = std::strrchr(text, ')');
    return after_name != nullptr && after_name[1] != '\0' ? after_name[2] : '?';
}

enum class Threads { gone, standing, running };

/// `standing`: every thread is stopped; those that are ending count as stopped.
Threads look_at_threads(int process) noexcept
{
    char path[32];
    std::snprintf(path, sizeof path, "/proc/%d/task", process);
    DIR* const threads = opendir(path);
    if (threads == nullptr) {
        return Threads::gone;
    }
    Threads seen = Threads::gone;
    while (const dirent* const entry = readdir(threads)) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        const char state = state_of_thread(dirfd(threads), entry->d_name);
        if (state == 'T' || state == 't') {
            seen = seen == Threads::gone ? Threads::standing : seen;
        } else if (state != '\0' && state != 'Z' && state != 'X') {
            seen = Threads::running;
        }
    }
    closedir(threads);
    return seen;
}

int send(int process, int signal) noexcept { return syscall(SYS_pidfd_send_signal, process, signal, nullptr, 0) == 0 ? 0 : errno; }

}  // namespace

/// A child that lets the process go on when this end of the pipe is closed, or too much time has passed.
int PausedProcess::start_watch(std::uint64_t max_ns) noexcept
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return errno;
    }
    watcher_ = fork();
    if (watcher_ < 0) {
        const int error = errno;
        close(ends[0]);
        close(ends[1]);
        watcher_ = 0;
        return error;
    }
    if (watcher_ == 0) {
        setsid();  // A signal for the whole job of the copier is not for this one.
        close(ends[1]);
        pollfd waits{ends[0], POLLIN, 0};
        while (poll(&waits, 1, static_cast<int>(max_ns / 1'000'000)) < 0 && errno == EINTR) {
        }
        _exit(send(process_.get(), SIGCONT));
    }
    close(ends[0]);
    watch_end_ = Descriptor{ends[1]};
    return 0;
}

int PausedProcess::pause(int process, std::uint64_t max_ns) noexcept
{
    process_ = Descriptor{static_cast<int>(syscall(SYS_pidfd_open, process, 0))};
    if (!process_.valid()) {
        return errno;
    }
    id_ = process;
    if (look_at_threads(process) == Threads::standing) {
        process_.reset();
        return EBUSY;  // Another process has stopped it, and may let it go on at any time.
    }
    int error = start_watch(max_ns);
    if (error == 0) {
        error = send(process_.get(), SIGSTOP);
    }
    const std::uint64_t begun_ns = monotonic_ns();
    while (error == 0) {
        const Threads seen = look_at_threads(process);
        if (seen != Threads::running) {
            error = seen == Threads::standing ? 0 : ESRCH;
            break;
        }
        if (monotonic_ns() - begun_ns >= std::min(max_ns, standing_wait_max_ns)) {
            error = EBUSY;
            break;
        }
        nanosleep(&pause_between_looks, nullptr);
    }
    if (error != 0) {
        go_on();
    }
    return error;
}

bool PausedProcess::stands() const noexcept { return process_.valid() && look_at_threads(id_) == Threads::standing; }

void PausedProcess::go_on() noexcept
{
    if (process_.valid()) {
        static_cast<void>(send(process_.get(), SIGCONT));
    }
    watch_end_.reset();
    if (watcher_ != 0) {
        while (waitpid(watcher_, nullptr, 0) < 0 && errno == EINTR) {
        }
        watcher_ = 0;
    }
    process_.reset();
}

}  // namespace stillpoint::os

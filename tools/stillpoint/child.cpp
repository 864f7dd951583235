#include "child.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/clock.hpp"
#include "output.hpp"

namespace stillpoint::tool {

namespace {

volatile std::sig_atomic_t signal_seen = 0;

/// How long one wait lasts at most: a signal between the look at the mark and the wait is seen then.
constexpr std::uint64_t slice_ns = 50'000'000;

[[noreturn]] void become(const ChildPlan& plan)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        std::signal(signal, SIG_DFL);
    }
    const int nothing = open("/dev/null", O_RDONLY);
    const int output = open(plan.output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    if (nothing < 0 || output < 0 || dup2(nothing, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0) {
        _exit(126);
    }
    close(nothing);
    close(output);
    for (const auto& [name, value] : plan.environment) {
        value.empty() ? unsetenv(name.c_str()) : setenv(name.c_str(), value.c_str(), 1);
    }
    std::vector<char*> pointers;
    for (const std::string& word : plan.words) {
        pointers.push_back(const_cast<char*>(word.c_str()));
    }
    pointers.push_back(nullptr);
    execv(pointers[0], pointers.data());
    const int error = errno;
    dprintf(2, "cannot run %s: %s\n", pointers[0], std::strerror(error));
    _exit(error == ENOENT ? 127 : 126);
}

}  // namespace

Child::Child(const ChildPlan& plan)
{
    std::fflush(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
        become(plan);
    }
    if (pid_ < 0) {
        has_ended_ = true;
        status_ = 126 << 8;
        return;
    }
    setpgid(pid_, pid_);  // Here, too: one of the two comes first. It fails once the child has become its program.
    handle_ = os::Descriptor{static_cast<int>(syscall(SYS_pidfd_open, pid_, 0))};
}

Child::~Child() { kill_group(); }

void Child::reap()
{
    // Kills the processes that the child has started, before the wait, which gives the number of the group free.
    kill(-pid_, SIGKILL);
    while (waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
    }
    has_ended_ = true;
}

bool Child::ended_by(std::uint64_t deadline_ns)
{
    while (!has_ended_) {
        siginfo_t facts{};
        if (waitid(P_PID, static_cast<id_t>(pid_), &facts, WEXITED | WNOHANG | WNOWAIT) == 0 && facts.si_pid == pid_) {
            reap();
            break;
        }
        const std::uint64_t now = os::monotonic_ns();
        if (now >= deadline_ns || interruption() != 0) {
            return false;
        }
        const std::uint64_t wait_ns = std::min(deadline_ns - now, handle_.valid() ? slice_ns : 500'000);
        const timespec wait{static_cast<time_t>(wait_ns / 1'000'000'000), static_cast<long>(wait_ns % 1'000'000'000)};
        pollfd handle{handle_.get(), POLLIN, 0};
        ppoll(&handle, handle_.valid() ? 1 : 0, &wait, nullptr);
    }
    return true;
}

void Child::kill_group()
{
    if (!has_ended_) {
        kill(pid_, SIGKILL);
        reap();
    }
}

bool Child::was_killed() const noexcept { return WIFSIGNALED(status_) && WTERMSIG(status_) == SIGKILL; }

std::string Child::how_it_ended() const
{
    return WIFSIGNALED(status_) ? text_of("signal {} ({})", WTERMSIG(status_), strsignal(WTERMSIG(status_)))
                                : text_of("exit code {}", WEXITSTATUS(status_));
}

void catch_interruption()
{
    struct sigaction action{};
    action.sa_handler = [](int signal) { signal_seen = signal; };
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        sigaction(signal, &action, nullptr);
    }
}

int interruption() noexcept { return signal_seen; }

std::string tail_of(const std::string& path, std::size_t bytes_max)
{
    std::string text;
    if (std::FILE* const file = std::fopen(path.c_str(), "re"); file != nullptr) {
        char piece[4096];
        std::size_t got = 0;
        while ((got = std::fread(piece, 1, sizeof piece, file)) > 0) {
            text.append(piece, got);
            text.erase(0, text.size() - std::min(text.size(), bytes_max));
        }
        std::fclose(file);
    }
    while (!text.empty() && text.back() == '\n') {
        text.pop_back();
    }
    return text;
}

}  // namespace stillpoint::tool

#include "runtime/term_signal.hpp"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/clock.hpp"
#include "os/futex.hpp"
#include "os/log.hpp"
#include "os/service_thread.hpp"

/// glibc's own name for sigaction, which no interposer replaces.
extern "C" int __sigaction(int, const struct sigaction*, struct sigaction*) noexcept;

namespace stillpoint::term_signal {

namespace {

constinit std::atomic<bool> is_active{false};
constinit std::atomic<pid_t> home_process{0};
constinit std::atomic<void (*)() noexcept> work{nullptr};
constinit std::atomic<std::uint64_t> work_limit_ms{0};
constinit sync::Atomic<std::uint32_t> is_asked{0};  ///< futex of the thread that waits for the signal
constinit sync::Atomic<std::uint32_t> is_done{0};   ///< futex of the same thread, while another one works

constinit os::ServiceThread waiting_thread;
constinit os::ServiceThread working_thread;

/// Returns where the process is the first of its container: the kernel lets no default action end that one.
void end_by_default_action() noexcept
{
    struct sigaction standard{};
    standard.sa_handler = SIG_DFL;
    __sigaction(SIGTERM, &standard, nullptr);
    std::uint64_t only = std::uint64_t{1} << (SIGTERM - 1);
    syscall(SYS_tgkill, getpid(), gettid(), SIGTERM);
    syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &only, nullptr, sizeof only);
}

extern "C" void stillpoint_on_term(int)
{
    const int saved_errno = errno;
    if (getpid() != home_process.load(std::memory_order_relaxed)) {
        end_by_default_action();  // In a child that vfork or clone has made.
    } else {
        is_asked.store(1, std::memory_order_release);
        os::futex_wake(is_asked);
    }
    errno = saved_errno;
}

bool is_ours(const struct sigaction& action) noexcept
{
    return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == &stillpoint_on_term;
}

/// Whatever its flags: the kernel looks at the handler alone.
bool is_default(const struct sigaction& action) noexcept { return action.sa_handler == SIG_DFL; }

struct sigaction our_action() noexcept
{
    struct sigaction ours{};
    ours.sa_handler = &stillpoint_on_term;
    ours.sa_flags = SA_RESTART | SA_ONSTACK;
    return ours;
}

void do_work(void*)
{
    work.load(std::memory_order_acquire)();
    is_done.store(1, std::memory_order_release);
    os::futex_wake(is_done);
}

void wait_for_signal(void*)
{
    while (is_asked.load(std::memory_order_acquire) == 0) {
        os::futex_wait(is_asked, 0);
    }
    const std::uint64_t deadline_ns = os::deadline_after_ms(static_cast<std::int64_t>(work_limit_ms.load(std::memory_order_relaxed)));
    // Without the second thread there is no limit, but there is still a checkpoint.
    if (!working_thread.start("sp-last", &do_work, nullptr)) {
        do_work(nullptr);
    }
    while (is_done.load(std::memory_order_acquire) == 0 && os::monotonic_ns() < deadline_ns) {
        os::futex_wait(is_done, 0, deadline_ns);
    }
    if (is_done.load(std::memory_order_acquire) == 0) {
        os::log(
            os::Severity::error,
            "SIGTERM: no last checkpoint in {} s, because a thread stays in its section or the pool's storage takes no writes; what was "
            "done since the last one is lost",
            work_limit_ms.load(std::memory_order_relaxed) / 1000);
    }
    end_by_default_action();
    syscall(SYS_exit_group, 128 + SIGTERM);
}

}  // namespace

Result<void> take_over(void (*last_work)() noexcept, std::uint64_t limit_ms)
{
    if (is_active.load(std::memory_order_acquire)) {
        return {};
    }
    work.store(last_work, std::memory_order_release);
    work_limit_ms.store(limit_ms, std::memory_order_relaxed);
    home_process.store(getpid(), std::memory_order_relaxed);
    if (auto started = waiting_thread.start("sp-term", &wait_for_signal, nullptr); !started) {
        return started;
    }
    is_active.store(true, std::memory_order_release);
    struct sigaction present{};
    const struct sigaction ours = our_action();
    if (__sigaction(SIGTERM, nullptr, &present) != 0 || (is_default(present) && __sigaction(SIGTERM, &ours, nullptr) != 0)) {
        return fail(SP_E_IO, errno, "a handler of SIGTERM cannot be installed: {}", strerror(errno));
    }
    return {};
}

bool is_taken_over(int number) noexcept { return number == SIGTERM && is_active.load(std::memory_order_acquire); }

int exchange(int number, const struct sigaction* wanted, struct sigaction* previous) noexcept
{
    const struct sigaction ours = our_action();
    if (wanted != nullptr && is_default(*wanted)) {
        wanted = &ours;
    }
    const int result = __sigaction(number, wanted, previous);
    if (result == 0 && previous != nullptr && is_ours(*previous)) {
        *previous = {};
        previous->sa_handler = SIG_DFL;
    }
    return result;
}

sighandler_t after_setting(int number, sighandler_t previous) noexcept
{
    if (!is_taken_over(number)) {
        return previous;
    }
    struct sigaction present{};
    if (__sigaction(number, nullptr, &present) == 0 && is_default(present)) {
        const struct sigaction ours = our_action();
        __sigaction(number, &ours, nullptr);
    }
    return previous == &stillpoint_on_term ? SIG_DFL : previous;
}

void reset_after_fork() noexcept
{
    if (!is_active.exchange(false, std::memory_order_acq_rel)) {
        return;
    }
    waiting_thread.forget();
    struct sigaction present{};
    if (__sigaction(SIGTERM, nullptr, &present) == 0 && is_ours(present)) {
        present = {};
        present.sa_handler = SIG_DFL;
        __sigaction(SIGTERM, &present, nullptr);
    }
    is_asked.store(0, std::memory_order_relaxed);
}

}  // namespace stillpoint::term_signal

#include "runtime/fault_handler.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "os/futex.hpp"

/// glibc's own name for sigaction, which no interposer replaces.
extern "C" int __sigaction(int, const struct sigaction*, struct sigaction*) noexcept;

namespace stillpoint {

namespace {

/// One signal that is ours first.
struct WatchedSignal {
    int number;
    std::atomic<FaultHandler> handler{nullptr};
    /// The program's action. A handler may read it at any instruction of a writer, so each new one
    /// goes to the next place; 64 changes during one read do not happen.
    std::array<struct sigaction, 64> program_actions{};
    std::atomic<const struct sigaction*> program_action{nullptr};
    std::size_t next_place = 0;
    os::FutexLock writers{};

    void set_program_action(const struct sigaction& wanted) noexcept
    {
        struct sigaction& place = program_actions[next_place];
        next_place = (next_place + 1) % program_actions.size();
        place = wanted;
        program_action.store(&place, std::memory_order_release);
    }
};

/// initial-exec: a handler must not allocate.
constinit thread_local const void* instruction [[gnu::tls_model("initial-exec")]] = nullptr;

const void* instruction_of([[maybe_unused]] const ucontext_t& context) noexcept
{
#if defined(__x86_64__)
    return reinterpret_cast<const void*>(context.uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
    return reinterpret_cast<const void*>(context.uc_mcontext.pc);
#else
    return nullptr;
#endif
}

constinit WatchedSignal segv{SIGSEGV};
constinit WatchedSignal bus{SIGBUS};

WatchedSignal* watched(int number) noexcept { return number == SIGSEGV ? &segv : number == SIGBUS ? &bus : nullptr; }

/// Does as the kernel does without a handler: ends the process with a core dump. A fault happens
/// again by itself when the handler returns; a signal that was sent must be sent again.
void end_by_default_action(int number, bool sent) noexcept
{
    struct sigaction standard{};
    standard.sa_handler = SIG_DFL;
    __sigaction(number, &standard, nullptr);
    if (sent) {
        syscall(SYS_tgkill, getpid(), gettid(), number);
    }
}

/// With the mask of the interrupted code and that of the action, as the kernel would, but for `number` itself.
void call_program_handler(const struct sigaction& action, int number, siginfo_t* info, void* context) noexcept
{
    // The kernel's form of a set: signal 1 is bit 0.
    std::uint64_t interrupted = 0, asked_for = 0, before = 0;
    std::memcpy(&interrupted, &static_cast<const ucontext_t*>(context)->uc_sigmask, sizeof interrupted);
    std::memcpy(&asked_for, &action.sa_mask, sizeof asked_for);
    const std::uint64_t mask = (interrupted | asked_for) & ~(std::uint64_t{1} << (number - 1));
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, &before, sizeof mask);
    if ((action.sa_flags & SA_SIGINFO) != 0) {
        action.sa_sigaction(number, info, context);
    } else {
        action.sa_handler(number);
    }
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, sizeof before);
}

extern "C" void stillpoint_on_fault(int number, siginfo_t* info, void* context)
{
    const int saved_errno = errno;
    const bool sent = info->si_code <= 0;  // By kill, raise or sigqueue: no page's fault.
    WatchedSignal& signal = *watched(number);
    instruction = instruction_of(*static_cast<const ucontext_t*>(context));
    const FaultHandler handler = signal.handler.load(std::memory_order_acquire);
    if (!sent && handler != nullptr && handler(info->si_addr)) {
        errno = saved_errno;
        return;
    }
    errno = saved_errno;
    const struct sigaction action = *signal.program_action.load(std::memory_order_acquire);
    if ((action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_IGN && sent) {
        return;
    }
    if ((action.sa_flags & SA_SIGINFO) == 0 && (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)) {
        end_by_default_action(number, sent);
        return;
    }
    if ((action.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) {
        struct sigaction standard{};
        standard.sa_handler = SIG_DFL;
        signal.set_program_action(standard);
    }
    call_program_handler(action, number, info, context);
}

}  // namespace

const void* faulting_instruction() noexcept { return instruction; }

bool fault_handler_installed(int number) noexcept
{
    const WatchedSignal* const signal = watched(number);
    return signal != nullptr && signal->program_action.load(std::memory_order_acquire) != nullptr;
}

namespace {

constinit std::atomic<bool> handlers_are_expected{false};

/// The kernel ends a process that faults with the signal blocked; a mask also comes from the program that called exec.
void unblock(int number) noexcept
{
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, number);
    pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
}

}  // namespace

void expect_fault_handlers() noexcept
{
    handlers_are_expected.store(true, std::memory_order_relaxed);
    unblock(SIGSEGV);
    unblock(SIGBUS);
}

bool fault_signal_stays_unblocked(int number) noexcept
{
    return watched(number) != nullptr && (handlers_are_expected.load(std::memory_order_relaxed) || fault_handler_installed(number));
}

Result<void> fault_handler_install(int number, FaultHandler handler)
{
    WatchedSignal& signal = *watched(number);
    signal.handler.store(handler, std::memory_order_release);
    if (fault_handler_installed(number)) {
        return {};
    }
    struct sigaction previous{};
    if (__sigaction(number, nullptr, &previous) != 0) {
        return fail(SP_E_IO, errno, "the program's handler of signal {} cannot be read: {}", number, strerror(errno));
    }
    signal.set_program_action(previous);
    struct sigaction ours{};
    ours.sa_sigaction = &stillpoint_on_fault;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    // Other signals wait until the page is served: their handlers may touch durable memory, and a fault in one that
    // interrupts this handler would find SIGSEGV blocked, and end the process. SIGSEGV and SIGBUS cannot wait.
    sigfillset(&ours.sa_mask);
    sigdelset(&ours.sa_mask, SIGSEGV);
    sigdelset(&ours.sa_mask, SIGBUS);
    if (__sigaction(number, &ours, nullptr) != 0) {
        signal.program_action.store(nullptr, std::memory_order_release);
        return fail(SP_E_IO, errno, "a handler of signal {} cannot be installed: {}", number, strerror(errno));
    }
    unblock(number);
    return {};
}

void fault_handler_exchange(int number, const struct sigaction* wanted, struct sigaction* previous) noexcept
{
    WatchedSignal& signal = *watched(number);
    const std::scoped_lock writer{signal.writers};
    const struct sigaction before = *signal.program_action.load(std::memory_order_relaxed);
    if (wanted != nullptr) {
        signal.set_program_action(*wanted);
    }
    if (previous != nullptr) {
        *previous = before;
    }
}

}  // namespace stillpoint

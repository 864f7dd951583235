// Invariants: a tracker's page fault is served whatever the program does with SIGSEGV by whichever call of libc, and the program's
// own faults reach it as it asked. In children, because handlers are the process's.

#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child_process.hpp"
#include "core/units.hpp"
#include "runtime/fault_handler.hpp"

namespace {

void* protected_page() { return mmap(nullptr, stillpoint::page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

std::atomic<void*> tracked_page{nullptr};  // These two are read by handlers.
std::atomic<void*> page_of_handler{nullptr};

bool serve_tracked_page(void* address) noexcept
{
    if (address != tracked_page) {
        return false;
    }
    return mprotect(tracked_page, stillpoint::page_bytes, PROT_READ | PROT_WRITE) == 0;
}

sigjmp_buf escape;

/// Volatile itself: the compiler must not see that nothing is there.
volatile char* volatile wild_pointer = reinterpret_cast<volatile char*>(16);

TEST(Fault, OfATrackedPageIsServedEvenWithAllSignalsBlocked)
{
    const auto ended = in_child([] {
        tracked_page = protected_page();
        if (!stillpoint::fault_handler_install(SIGSEGV, &serve_tracked_page)) {
            abort();
        }
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, nullptr);
        sigprocmask(SIG_SETMASK, &all, nullptr);
        *static_cast<volatile char*>(tracked_page.load()) = 1;
        say("served");
        abort();
    });
    EXPECT_EQ(ended.output, "served");
}

TEST(Fault, IsServedBeforeAnotherSignalsHandlerTouchesDurableMemory)
{
    const auto ended = in_child([] {
        tracked_page = protected_page();
        page_of_handler = protected_page();
        signal(SIGUSR1, [](int) {
            *static_cast<volatile char*>(page_of_handler.load()) = 1;
            say("h");
        });
        const auto serve_and_raise = [](void* address) noexcept {
            const bool is_ours = address == tracked_page.load() || address == page_of_handler.load();
            if (address == tracked_page.load()) {
                raise(SIGUSR1);
            }
            return is_ours && mprotect(address, stillpoint::page_bytes, PROT_READ | PROT_WRITE) == 0;
        };
        if (!stillpoint::fault_handler_install(SIGSEGV, serve_and_raise)) {
            abort();
        }
        *static_cast<volatile char*>(tracked_page.load()) = 1;
        say("s");
        abort();
    });
    EXPECT_EQ(ended.output, "hs");
}

TEST(Fault, OfTheProgramReachesItsOwnHandlerWithTheSignalsBlockedThatItAskedFor)
{
    const auto ended = in_child([] {
        (void)stillpoint::fault_handler_install(SIGSEGV, &serve_tracked_page);
        struct sigaction action{};
        sigaddset(&action.sa_mask, SIGUSR2);
        action.sa_handler = [](int) {
            sigset_t mask;
            pthread_sigmask(SIG_BLOCK, nullptr, &mask);
            say(sigismember(&mask, SIGUSR1) == 1 ? "1" : "!");
            say(sigismember(&mask, SIGUSR2) == 1 ? "2" : "!");
            say(sigismember(&mask, SIGALRM) == 0 ? "a" : "!");
            say(sigismember(&mask, SIGSEGV) == 0 ? "v" : "!");
            siglongjmp(escape, 1);
        };
        sigaction(SIGSEGV, &action, nullptr);
        sigset_t interrupted;
        sigemptyset(&interrupted);
        sigaddset(&interrupted, SIGUSR1);
        pthread_sigmask(SIG_BLOCK, &interrupted, nullptr);
        if (sigsetjmp(escape, 1) == 0) {
            *wild_pointer = 1;
        }
        abort();
    });
    EXPECT_EQ(ended.output, "12av");
}

TEST(Fault, OfTheProgramReachesItsOwnHandlerSetBeforeOrAfter)
{
    for (const bool before : {true, false}) {
        const auto ended = in_child([before] {
            const auto set_handler = [] {
                struct sigaction action{};
                action.sa_flags = SA_SIGINFO;
                action.sa_sigaction = [](int, siginfo_t* info, void*) {
                    say(info->si_addr == reinterpret_cast<void*>(16) ? "s" : "!");
                    siglongjmp(escape, 1);
                };
                sigaction(SIGSEGV, &action, nullptr);
            };
            if (before) {
                set_handler();
            }
            if (!stillpoint::fault_handler_install(SIGSEGV, &serve_tracked_page)) {
                abort();
            }
            if (!before) {
                set_handler();
            }
            struct sigaction seen{};
            sigaction(SIGSEGV, nullptr, &seen);
            say((seen.sa_flags & SA_SIGINFO) != 0 ? "i" : "!");
            for (int i = 0; i < 2; ++i) {
                if (sigsetjmp(escape, 1) == 0) {
                    *wild_pointer = 1;
                }
            }
            tracked_page = protected_page();
            *static_cast<volatile char*>(tracked_page.load()) = 1;
            say("t");
            abort();
        });
        EXPECT_EQ(ended.output, "isst") << before;
    }
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
extern "C" sighandler_t bsd_signal(int, sighandler_t) noexcept;

TEST(Fault, OfATrackedPageIsServedWhicheverCallTheProgramSetsItsHandlerBy)
{
    constexpr sighandler_t (*calls[])(int, sighandler_t) = {&signal, &bsd_signal, &ssignal, &sysv_signal, &__sysv_signal, &sigset};
    for (const auto call : calls) {
        const auto ended = in_child([call] {
            tracked_page = protected_page();
            (void)stillpoint::fault_handler_install(SIGSEGV, &serve_tracked_page);
            call(SIGSEGV, [](int) {
                say("own");
                siglongjmp(escape, 1);
            });
            *static_cast<volatile char*>(tracked_page.load()) = 1;
            if (sigsetjmp(escape, 1) == 0) {
                *wild_pointer = 1;
            }
            say(call(SIGSEGV, SIG_IGN) == SIG_ERR ? "!" : ".");
            abort();
        });
        EXPECT_EQ(ended.output, "own.");
    }
}

TEST(Fault, OfATrackedPageIsServedWhicheverCallBlocksTheSignal)
{
    const std::function<void()> calls[] = {[] { sighold(SIGSEGV); }, [] { sigblock(-1); }, [] { sigsetmask(-1); },
                                           [] { sigset(SIGSEGV, SIG_HOLD); }};
    for (const auto& call : calls) {
        const auto ended = in_child([&] {
            tracked_page = protected_page();
            (void)stillpoint::fault_handler_install(SIGSEGV, &serve_tracked_page);
            call();
            *static_cast<volatile char*>(tracked_page.load()) = 1;
            say("served");
            abort();
        });
        EXPECT_EQ(ended.output, "served");
    }
}
#pragma GCC diagnostic pop

TEST(Fault, OfATrackedPageIsServedInAHandlerDuringAWaitWithAMask)
{
    using Wait = int (*)(const sigset_t*);
    static constexpr timespec limit{5, 0};
    constexpr Wait waits[] = {[](const sigset_t* mask) { return sigsuspend(mask); },
                              [](const sigset_t* mask) { return pselect(0, nullptr, nullptr, nullptr, &limit, mask); },
                              [](const sigset_t* mask) { return ppoll(nullptr, 0, &limit, mask); },
                              [](const sigset_t* mask) {
                                  epoll_event event{};
                                  return epoll_pwait(epoll_create1(0), &event, 1, 5000, mask);
                              }};
    for (const auto wait : waits) {
        const auto ended = in_child([wait] {
            tracked_page = protected_page();
            (void)stillpoint::fault_handler_install(SIGSEGV, &serve_tracked_page);
            signal(SIGUSR1, [](int) {
                *static_cast<volatile char*>(tracked_page.load()) = 1;
                say("served");
            });
            sigset_t mask;
            sigemptyset(&mask);
            sigaddset(&mask, SIGUSR1);
            sigprocmask(SIG_BLOCK, &mask, nullptr);
            raise(SIGUSR1);
            sigfillset(&mask);
            sigdelset(&mask, SIGUSR1);
            wait(&mask);
            abort();
        });
        EXPECT_EQ(ended.output, "served");
    }
}

TEST(Fault, OfAProgramWithoutAHandlerKillsIt)
{
    const auto ended = in_child([] {
        (void)stillpoint::fault_handler_install(SIGSEGV, &serve_tracked_page);
        EXPECT_EQ(signal(SIGSEGV, SIG_DFL), SIG_DFL);
        *wild_pointer = 1;
    });
    ASSERT_TRUE(WIFSIGNALED(ended.status));
    EXPECT_EQ(WTERMSIG(ended.status), SIGSEGV);
    const auto sent = in_child([] {
        (void)stillpoint::fault_handler_install(SIGSEGV, &serve_tracked_page);
        raise(SIGSEGV);
    });
    ASSERT_TRUE(WIFSIGNALED(sent.status));
    EXPECT_EQ(WTERMSIG(sent.status), SIGSEGV);
}

TEST(Fault, HandlerThatAsksToBeResetRunsOnce)
{
    const auto ended = in_child([] {
        (void)stillpoint::fault_handler_install(SIGSEGV, &serve_tracked_page);
        struct sigaction action{};
        action.sa_flags = static_cast<int>(SA_RESETHAND);
        action.sa_handler = [](int) { say("r"); };
        sigaction(SIGSEGV, &action, nullptr);
        *wild_pointer = 1;
    });
    EXPECT_EQ(ended.output, "r");
    EXPECT_TRUE(WIFSIGNALED(ended.status));
}

}  // namespace

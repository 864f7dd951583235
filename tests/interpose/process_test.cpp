// Invariants: every orderly end of a process ends its session exactly once and as late as it can; a
// crash does not; a child, made by fork or vfork, never ends its parent's; buffers in durable memory are
// prepared for the kernel; SIGSEGV reaches the program as it asked.

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "core/units.hpp"
#include "recording_session.hpp"
#include "runtime/fase.hpp"
#include "runtime/fault_handler.hpp"

namespace {

struct Ended {
    int status;
    std::string output;
};

/// Runs `body` in a fresh process; what it writes to standard output comes back.
Ended in_child(const std::function<void()>& body)
{
    int pipe_ends[2];
    EXPECT_EQ(pipe(pipe_ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        dup2(pipe_ends[1], STDOUT_FILENO);
        close(pipe_ends[0]);
        close(pipe_ends[1]);
        body();
        _exit(99);
    }
    close(pipe_ends[1]);
    Ended ended{-1, {}};
    char buffer[256];
    ssize_t got = 0;
    while ((got = read(pipe_ends[0], buffer, sizeof buffer)) > 0) {
        ended.output.append(buffer, static_cast<std::size_t>(got));
    }
    close(pipe_ends[0]);
    waitpid(child, &ended.status, 0);
    return ended;
}

void say(const char* text)
{
    [[maybe_unused]] const auto written = write(STDOUT_FILENO, text, std::strlen(text));
}

TEST(Process, EndsItsSessionAfterTheHandlersOfAtexit)
{
    const auto ended = in_child([] {
        atexit([] { say("h"); });
        exit(3);
    });
    EXPECT_EQ(WEXITSTATUS(ended.status), 3);
    EXPECT_EQ(ended.output, "hE");
}

TEST(Process, EndsItsSessionBeforeUnderscoreExit)
{
    const auto first = in_child([] { _exit(4); });
    EXPECT_EQ(WEXITSTATUS(first.status), 4);
    EXPECT_EQ(first.output, "E");
    const auto second = in_child([] { _Exit(5); });
    EXPECT_EQ(WEXITSTATUS(second.status), 5);
    EXPECT_EQ(second.output, "E");
}

TEST(Process, EndsItsSessionAfterTheHandlersOfAtQuickExit)
{
    const auto ended = in_child([] {
        at_quick_exit([] { say("q"); });
        quick_exit(6);
    });
    EXPECT_EQ(WEXITSTATUS(ended.status), 6);
    EXPECT_EQ(ended.output, "qE");
}

TEST(Process, DoesNotEndItsSessionWhenItAborts)
{
    const auto ended = in_child([] { abort(); });
    EXPECT_TRUE(WIFSIGNALED(ended.status));
    EXPECT_EQ(ended.output, "");
}

TEST(Process, EndsItsSessionBeforeEveryFormOfExec)
{
    char name[] = "true";
    char* const arguments[] = {name, nullptr};
    const std::function<void()> forms[] = {
        [&] { execve("/bin/true", arguments, environ); },
        [&] { execv("/bin/true", arguments); },
        [&] { execvp("true", arguments); },
        [&] { execvpe("true", arguments, environ); },
        [] { execl("/bin/sh", "sh", "-c", "exit 0", static_cast<char*>(nullptr)); },
        [] { execlp("sh", "sh", "-c", "exit 0", static_cast<char*>(nullptr)); },
        [] { execle("/bin/sh", "sh", "-c", "exit 0", static_cast<char*>(nullptr), environ); },
        [&] { fexecve(open("/bin/true", O_RDONLY), arguments, environ); },
        [&] { execveat(AT_FDCWD, "/bin/true", arguments, environ, 0); },
    };
    for (std::size_t i = 0; i < std::size(forms); ++i) {
        const auto ended = in_child([&] {
            recording::open = true;
            forms[i]();
        });
        EXPECT_EQ(ended.status, 0) << i;
        EXPECT_EQ(ended.output, "E") << i;
    }
}

TEST(Process, KeepsItsSessionWhenExecFindsNoProgram)
{
    const auto ended = in_child([] {
        recording::open = true;
        char name[] = "no";
        char* const arguments[] = {name, nullptr};
        if (execv("/nonexistent/no", arguments) == -1 && errno == ENOENT) {
            say("1");
        }
        if (execvp("no-such-program-anywhere", arguments) == -1 && errno == ENOENT) {
            say("2");
        }
        if (execv("/etc/passwd", arguments) == -1 && errno == EACCES) {
            say("3");
        }
        if (execv("/tmp", arguments) == -1 && errno == EACCES) {
            say("4");
        }
        abort();
    });
    EXPECT_EQ(ended.output, "1234");
}

TEST(Process, ChildOfVforkDoesNotEndItsParentsSession)
{
    const auto ended = in_child([] {
        recording::open = true;
        const pid_t child = vfork();
        if (child == 0) {
            _exit(0);
        }
        waitpid(child, nullptr, 0);
        say("p");
        abort();
    });
    EXPECT_EQ(ended.output, "p");
}

TEST(Process, ForkRunsTheProgramsHandlersAndDetachesTheChild)
{
    const auto ended = in_child([] {
        pthread_atfork([] { say("b"); }, [] { say("P"); }, [] { say("C"); });
        const int before = recording::forks_in_child;
        const pid_t child = fork();
        if (child == 0) {
            say(recording::forks_in_child == before + 1 ? "c" : "!");
            abort();
        }
        waitpid(child, nullptr, 0);
        say("p");
        const pid_t second = _Fork();
        if (second == 0) {
            say(recording::forks_in_child == before + 1 ? "d" : "!");
            abort();
        }
        waitpid(second, nullptr, 0);
        abort();
    });
    // The parent's own handler may write before or after the child: compare as sets.
    std::string sorted = ended.output;
    std::ranges::sort(sorted);
    EXPECT_EQ(sorted, "CPbcdp");
}

TEST(Process, TellsTheSessionOfEachThreadThatEnds)
{
    ASSERT_TRUE(stillpoint::fase_activate());
    const int before = recording::threads_ended;
    std::jthread([] { const stillpoint::FaseGuard fase; }).join();
    EXPECT_EQ(recording::threads_ended, before + 1);
}

/// One page at a durable address, without a pool.
class KernelWrite : public testing::Test {
protected:
    void SetUp() override
    {
        buffer = static_cast<char*>(mmap(reinterpret_cast<void*>(stillpoint::window_base),
                                         stillpoint::page_bytes, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0));
        ASSERT_NE(buffer, MAP_FAILED);
        file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        ASSERT_GE(file, 0);
    }
    void TearDown() override
    {
        close(file);
        munmap(buffer, stillpoint::page_bytes);
    }
    void expect_prepared(std::size_t bytes, const char* call)
    {
        EXPECT_EQ(recording::prepared_address.exchange(nullptr), buffer) << call;
        EXPECT_EQ(recording::prepared_bytes.exchange(0), bytes) << call;
    }

    char* buffer = nullptr;
    int file = -1;
};

TEST_F(KernelWrite, IsPreparedForWhereTheBufferIsDurable)
{
    const iovec parts[] = {{buffer, 32}};
    EXPECT_EQ(read(file, buffer, 16), 16);
    expect_prepared(16, "read");
    EXPECT_EQ(pread(file, buffer, 17, 0), 17);
    expect_prepared(17, "pread");
    EXPECT_EQ(pread64(file, buffer, 18, 0), 18);
    expect_prepared(18, "pread64");
    EXPECT_EQ(readv(file, parts, 1), 32);
    expect_prepared(32, "readv");
    EXPECT_EQ(preadv(file, parts, 1, 0), 32);
    expect_prepared(32, "preadv");
    EXPECT_EQ(preadv64(file, parts, 1, 0), 32);
    expect_prepared(32, "preadv64");
    EXPECT_EQ(preadv2(file, parts, 1, 0, 0), 32);
    expect_prepared(32, "preadv2");
    EXPECT_EQ(preadv64v2(file, parts, 1, 0, 0), 32);
    expect_prepared(32, "preadv64v2");
    EXPECT_EQ(getrandom(buffer, 19, 0), 19);
    expect_prepared(19, "getrandom");
    FILE* stream = fdopen(dup(file), "r");
    EXPECT_EQ(fread(buffer, 4, 5, stream), 5u);
    expect_prepared(20, "fread");
    EXPECT_EQ(fread_unlocked(buffer, 3, 7, stream), 7u);
    expect_prepared(21, "fread_unlocked");
    fclose(stream);
}

TEST_F(KernelWrite, IsPreparedForOnSocketsAndNotForOrdinaryMemory)
{
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ASSERT_EQ(write(ends[1], "abcdefghij", 10), 10);
    EXPECT_EQ(recv(ends[0], buffer, 2, 0), 2);
    expect_prepared(2, "recv");
    EXPECT_EQ(recvfrom(ends[0], buffer, 3, 0, nullptr, nullptr), 3);
    expect_prepared(3, "recvfrom");
    iovec part{buffer, 4};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    EXPECT_EQ(recvmsg(ends[0], &message, 0), 4);
    expect_prepared(4, "recvmsg");
    char ordinary = 0;
    EXPECT_EQ(read(ends[0], &ordinary, 1), 1);
    EXPECT_EQ(ordinary, 'j');
    EXPECT_EQ(recording::prepared_address.load(), nullptr);
    EXPECT_EQ(read(-1, buffer, 1), -1);
    EXPECT_EQ(errno, EBADF);
    recording::prepared_address = nullptr;
    close(ends[0]);
    close(ends[1]);
}

// Faults: in children, because handlers are the process's.

void* protected_page()
{
    return mmap(nullptr, stillpoint::page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

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

// Invariants: every orderly end of a process ends its session exactly once and as late as it can; a
// crash does not; a child, made by fork or vfork, never ends its parent's; buffers in durable memory are
// prepared for the kernel.

#include <algorithm>
#include <atomic>
#include <cerrno>
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

#include "child_process.hpp"
#include "core/units.hpp"
#include "recording_session.hpp"
#include "runtime/fase.hpp"
#include "runtime/fault_handler.hpp"

namespace {

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
        buffer = static_cast<char*>(mmap(reinterpret_cast<void*>(stillpoint::window_base), stillpoint::page_bytes, PROT_READ | PROT_WRITE,
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

}  // namespace

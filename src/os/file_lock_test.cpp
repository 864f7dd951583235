// Locks between processes. Invariant: one exclusive holder, and /proc/locks names it.

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "os/descriptor.hpp"
#include "os/file_lock.hpp"

namespace stillpoint::os {
namespace {

class FileLock : public testing::Test {
protected:
    FileLock()
    {
        const char* const parent = std::getenv("TMPDIR");
        path_ = std::string{parent != nullptr ? parent : "."} + "/file-lock-XXXXXX";
        file_ = Descriptor{mkstemp(path_.data())};
    }
    ~FileLock() override { unlink(path_.c_str()); }

    [[nodiscard]] Descriptor another() const { return Descriptor{open(path_.c_str(), O_RDWR | O_CLOEXEC)}; }

    std::string path_;
    Descriptor file_;
};

TEST_F(FileLock, ExcludesEveryOtherOpeningWhileItIsExclusive)
{
    const Descriptor other = another();
    EXPECT_EQ(try_lock_file(file_.get(), LockKind::exclusive), 0);
    EXPECT_EQ(try_lock_file(other.get(), LockKind::exclusive), EWOULDBLOCK);
    EXPECT_EQ(try_lock_file(other.get(), LockKind::shared), EWOULDBLOCK);
    file_.reset();
    EXPECT_EQ(try_lock_file(other.get(), LockKind::exclusive), 0);
}

TEST_F(FileLock, IsSharedAmongReaders)
{
    const Descriptor other = another();
    EXPECT_EQ(try_lock_file(file_.get(), LockKind::shared), 0);
    EXPECT_EQ(try_lock_file(other.get(), LockKind::shared), 0);
    EXPECT_EQ(exclusive_lock_holder(path_), 0) << "a reader is not an exclusive holder";
}

TEST_F(FileLock, NamesItsHolderAlsoFromAnotherProcess)
{
    EXPECT_EQ(exclusive_lock_holder(path_), 0);
    ASSERT_EQ(try_lock_file(file_.get(), LockKind::exclusive), 0);
    const pid_t holder = getpid();
    EXPECT_EQ(exclusive_lock_holder(path_), holder);
    const pid_t child = fork();
    if (child == 0) {
        _exit(exclusive_lock_holder(path_) == holder ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

/// More locks than one piece of the list holds, each on a file of its own.
struct ManyLocks {
    explicit ManyLocks(const std::string& prefix)
    {
        for (int i = 0; i < 200; ++i) {
            names.push_back(prefix + "." + std::to_string(i));
            files.emplace_back(open(names.back().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
            EXPECT_EQ(try_lock_file(files.back().get(), LockKind::exclusive), 0);
        }
    }
    ManyLocks(const ManyLocks&) = delete;
    ManyLocks& operator=(const ManyLocks&) = delete;
    ~ManyLocks()
    {
        for (const auto& name : names) {
            unlink(name.c_str());
        }
    }

    std::vector<std::string> names;
    std::vector<Descriptor> files;
};

TEST_F(FileLock, IsFoundAmongMoreLocksThanOnePieceOfTheListHolds)
{
    const ManyLocks locks{path_};
    for (const auto& name : locks.names) {
        EXPECT_EQ(exclusive_lock_holder(name), getpid());
    }
    EXPECT_EQ(exclusive_lock_holder(path_), 0);
}

TEST_F(FileLock, IsFoundWhileOtherLocksComeAndGo)
{
    const ManyLocks locks{path_};
    const pid_t neighbour = fork();
    if (neighbour == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        // Every lock that ends moves those after it towards the front of the list.
        for (;;) {
            for (const LockKind kind : {LockKind::exclusive, LockKind::shared}) {
                const Descriptor passing = another();
                static_cast<void>(try_lock_file(passing.get(), kind));
            }
        }
    }
    int missed = 0;
    for (int round = 0; round < 20; ++round) {
        for (const auto& name : locks.names) {
            missed += exclusive_lock_holder(name) == getpid() ? 0 : 1;
        }
    }
    EXPECT_EQ(missed, 0) << "of " << 20 * locks.names.size();
    kill(neighbour, SIGKILL);
    waitpid(neighbour, nullptr, 0);
}

TEST_F(FileLock, IsRefusedAtOnceWhileItsHolderLives)
{
    ASSERT_EQ(try_lock_file(file_.get(), LockKind::exclusive), 0);
    const Descriptor other = another();
    int holder = 0;
    EXPECT_EQ(lock_file(other.get(), LockKind::exclusive, path_, holder), EWOULDBLOCK);
    EXPECT_EQ(holder, getpid());
}

TEST_F(FileLock, IsWaitedForWhereItsHolderHasEndedAndTheKernelStillKeepsIt)
{
    // The holder ends at once; a child of its own keeps the open file, and so the lock, until it is told.
    int told[2];
    ASSERT_EQ(pipe(told), 0);
    const pid_t holder = fork();
    if (holder == 0) {
        if (try_lock_file(file_.get(), LockKind::exclusive) == 0 && fork() == 0) {
            char byte = 0;
            close(told[1]);
            [[maybe_unused]] const ssize_t got = read(told[0], &byte, 1);
        }
        _exit(0);
    }
    waitpid(holder, nullptr, 0);
    file_.reset();
    close(told[0]);
    const Descriptor other = another();
    EXPECT_EQ(try_lock_file(other.get(), LockKind::exclusive), EWOULDBLOCK);
    close(told[1]);
    int seen = 0;
    EXPECT_EQ(lock_file(other.get(), LockKind::exclusive, path_, seen), 0);
}

TEST_F(FileLock, MarksQueuedWritesForAsLongAsTheOpenFileLives)
{
    const Descriptor next = another();
    EXPECT_EQ(await_queued_writes(next.get()), 0);
    ASSERT_EQ(mark_queued_writes(file_.get()), 0);
    EXPECT_EQ(mark_queued_writes(next.get()), EAGAIN);
    EXPECT_EQ(await_queued_writes(file_.get()), 0) << "its own mark is not in its way";
    EXPECT_EQ(try_lock_file(next.get(), LockKind::exclusive), 0) << "a mark is not a lock";
    // A child stands for the kernel, which keeps the open file for some time longer.
    int told[2];
    ASSERT_EQ(pipe(told), 0);
    const pid_t child = fork();
    if (child == 0) {
        char byte = 0;
        [[maybe_unused]] const ssize_t got = read(told[0], &byte, 1);
        usleep(50'000);
        _exit(0);
    }
    file_.reset();
    EXPECT_EQ(mark_queued_writes(next.get()), EAGAIN);
    close(told[0]);
    ASSERT_EQ(write(told[1], "x", 1), 1);
    EXPECT_EQ(await_queued_writes(next.get()), 0);
    EXPECT_EQ(mark_queued_writes(next.get()), 0);
    waitpid(child, nullptr, 0);
    close(told[1]);
}

}  // namespace
}  // namespace stillpoint::os

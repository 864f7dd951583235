// Creating and opening pool files. Invariants:
//   - a failed creation leaves no file, a failed opening leaves the file as it was;
//   - two processes never have one file open for writing; the refused one learns which process has it;
//   - only a regular file is ever opened.

#include <cerrno>
#include <cstddef>
#include <fcntl.h>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "media/open.hpp"
#include "support/temporary_directory.hpp"
#include "support/test_pages.hpp"

namespace stillpoint {
namespace {

constexpr std::uint64_t four_pages = 4 * page_bytes;

/// The result of `body` in a child process; 200 and above if it did not come to an end.
int in_child(const std::function<int()>& body)
{
    const pid_t child = fork();
    if (child == 0) {
        _exit(body());
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 200 + WTERMSIG(status);
}

class OpenTest : public testing::Test {
protected:
    OpenTest() { options_.path = directory_.file("pool"); }

    [[nodiscard]] bool file_exists() const { return access(options_.path.c_str(), F_OK) == 0; }

    std::unique_ptr<Medium> create()
    {
        auto medium = create_medium(options_, four_pages);
        EXPECT_TRUE(medium) << medium.error().message;
        return std::move(*medium);
    }

    test::TemporaryDirectory directory_;
    MediumOptions options_;
};

TEST_F(OpenTest, CreatesAnAllocatedFileThatOnlyItsOwnerCanRead)
{
    const mode_t old_mask = umask(0);
    const auto medium = create();
    umask(old_mask);
    struct stat facts{};
    ASSERT_EQ(stat(options_.path.c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 07777u, 0600u);
    EXPECT_EQ(facts.st_size, off_t{four_pages});
    EXPECT_GE(facts.st_blocks * 512, off_t{four_pages}) << "the file is sparse";
    EXPECT_EQ(medium->size_bytes(), four_pages);
    EXPECT_FALSE(medium->byte_addressable());
    EXPECT_EQ(medium->mapping(), nullptr);
    EXPECT_FALSE(medium->mechanism().empty());
}

TEST_F(OpenTest, FindsWhatAnEarlierOpeningWrote)
{
    const auto pages = test::numbered_pages(1);
    const BlockWrite batch[] = {test::write_of(pages[0], 2)};
    ASSERT_TRUE(create()->write(batch));
    const auto again = open_medium(options_);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(test::page_value(**again, 2), 1u);
    EXPECT_EQ(test::page_value(**again, 3), 0u);
}

TEST_F(OpenTest, DoesNotTouchAFileThatExistsAlready)
{
    std::ofstream{options_.path} << "precious";
    EXPECT_EQ(create_medium(options_, four_pages).error().code, SP_E_POOL_EXISTS);
    std::string content;
    std::ifstream{options_.path} >> content;
    EXPECT_EQ(content, "precious");
}

TEST_F(OpenTest, DoesNotCreateThroughADanglingSymbolicLink)
{
    ASSERT_EQ(symlink(directory_.file("elsewhere").c_str(), options_.path.c_str()), 0);
    EXPECT_EQ(create_medium(options_, four_pages).error().code, SP_E_POOL_EXISTS);
    EXPECT_NE(access(directory_.file("elsewhere").c_str(), F_OK), 0);
}

TEST_F(OpenTest, RemovesTheFileAgainWhenTheDiskIsTooFull)
{
    options_.faults = "fallocate:ENOSPC@1";
    const auto medium = create_medium(options_, four_pages);
    ASSERT_FALSE(medium);
    EXPECT_EQ(medium.error().code, SP_E_NO_SPACE);
    EXPECT_NE(medium.error().text().find(options_.path), std::string::npos);
    EXPECT_FALSE(file_exists());
}

TEST_F(OpenTest, RemovesTheFileAgainWhenAllocationFailsForAnotherReason)
{
    options_.faults = "fallocate:EIO@1";
    EXPECT_EQ(create_medium(options_, four_pages).error().code, SP_E_IO);
    EXPECT_FALSE(file_exists());
}

TEST_F(OpenTest, RefusesSizesThatAreNotWholePages)
{
    EXPECT_EQ(create_medium(options_, 0).error().code, SP_E_INVALID_ARGUMENT);
    EXPECT_EQ(create_medium(options_, 4097).error().code, SP_E_INVALID_ARGUMENT);
    EXPECT_FALSE(file_exists());
}

TEST_F(OpenTest, TellsAMissingDirectoryFromAMissingFile)
{
    EXPECT_EQ(open_medium(options_).error().code, SP_E_POOL_MISSING);
    options_.path = directory_.file("no/such/pool");
    EXPECT_EQ(create_medium(options_, four_pages).error().code, SP_E_POOL_MISSING);
}

TEST_F(OpenTest, RefusesWhatIsNotARegularFile)
{
    options_.path = directory_.path();
    EXPECT_EQ(open_medium(options_).error().code, SP_E_NOT_A_POOL);
    options_.path = "/dev/null";
    EXPECT_EQ(open_medium(options_).error().code, SP_E_NOT_A_POOL);
    options_.path = directory_.file("fifo");
    ASSERT_EQ(mkfifo(options_.path.c_str(), 0600), 0);
    EXPECT_EQ(open_medium(options_).error().code, SP_E_NOT_A_POOL);  // And does not hang.
}

TEST_F(OpenTest, OpensAPoolThroughASymbolicLink)
{
    create();
    const std::string target = options_.path;
    options_.path = directory_.file("link");
    ASSERT_EQ(symlink(target.c_str(), options_.path.c_str()), 0);
    EXPECT_TRUE(open_medium(options_));
}

TEST_F(OpenTest, ReportsAFileThatMayNotBeWritten)
{
    create();
    ASSERT_EQ(chmod(options_.path.c_str(), 0400), 0);
    ASSERT_EQ(chmod(directory_.path().c_str(), 0755), 0);
    const int result = in_child([&] {
        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) {
            return 100;
        }
        const auto medium = open_medium(options_);
        return medium ? 101 : static_cast<int>(medium.error().code);
    });
    EXPECT_EQ(result, SP_E_POOL_READ_ONLY);
}

TEST_F(OpenTest, NamesTheProcessThatHasThePoolOpen)
{
    const auto medium = create();
    const std::string holder = "process " + std::to_string(getpid());
    EXPECT_EQ(lock_holder_pid(options_.path), getpid());
    const int result = in_child([&] {
        medium->detach_after_fork();
        const auto second = open_medium(options_);
        if (second || second.error().code != SP_E_POOL_LOCKED) {
            return 1;
        }
        return second.error().text().find(holder) != std::string::npos ? 0 : 2;
    });
    EXPECT_EQ(result, 0);
}

TEST_F(OpenTest, FreesTheLockWithTheMedium)
{
    create();
    EXPECT_EQ(lock_holder_pid(options_.path), 0);
    EXPECT_TRUE(open_medium(options_));
}

TEST_F(OpenTest, SeesNoHolderOfAFileThatDoesNotExist) { EXPECT_EQ(lock_holder_pid(options_.path), 0); }

TEST_F(OpenTest, AChildThatDetachesLeavesTheParentsLockAndItsWritesAlone)
{
    auto medium = create();
    const int result = in_child([&] {
        medium->detach_after_fork();
        medium.reset();  // Must not unmap or unlock anything of the parent's.
        return 0;
    });
    EXPECT_EQ(result, 0);
    EXPECT_EQ(lock_holder_pid(options_.path), getpid());
    const auto pages = test::numbered_pages(2);
    const BlockWrite batch[] = {test::write_of(pages[0], 0), test::write_of(pages[1], 3)};
    EXPECT_TRUE(medium->write(batch));
    EXPECT_TRUE(medium->sync());
}

TEST_F(OpenTest, ReadersShareThePoolAndAWriterExcludesThem)
{
    {
        const auto writer = create();
        EXPECT_EQ(open_medium_read_only(options_, true).error().code, SP_E_POOL_LOCKED);
        EXPECT_TRUE(open_medium_read_only(options_, false)) << "`info` on a running program";
    }
    const auto first = open_medium_read_only(options_, true);
    const auto second = open_medium_read_only(options_, true);
    ASSERT_TRUE(first);
    EXPECT_TRUE(second);
    EXPECT_EQ(open_medium(options_).error().code, SP_E_POOL_LOCKED);
}

TEST_F(OpenTest, WritesNothingThroughAMediumOpenedForReading)
{
    create();
    for (const auto kind : {MediumKind::file, MediumKind::memory}) {
        options_.kind = kind;
        const auto medium = open_medium_read_only(options_, true);
        ASSERT_TRUE(medium) << medium.error().message;
        const auto pages = test::numbered_pages(1);
        const BlockWrite batch[] = {test::write_of(pages[0], 0)};
        EXPECT_EQ((*medium)->write(batch).error().code, SP_E_POOL_READ_ONLY);
        EXPECT_EQ((*medium)->sync().error().code, SP_E_POOL_READ_ONLY);
        EXPECT_EQ((*medium)->resize(2 * four_pages).error().code, SP_E_POOL_READ_ONLY);
        EXPECT_EQ(test::page_value(**medium, 0), 0u);
    }
}

TEST_F(OpenTest, RefusesKindsThatTheFileSystemCannotGive)
{
    const test::TemporaryDirectory shm{"/dev/shm"};  // tmpfs is memory, but never MAP_SYNC.
    options_.path = shm.file("pool");
    options_.kind = MediumKind::dax;
    const auto medium = create_medium(options_, four_pages);
    ASSERT_FALSE(medium);
    EXPECT_EQ(medium.error().code, SP_E_UNSUPPORTED);
    EXPECT_NE(medium.error().text().find("MAP_SYNC"), std::string::npos);
    EXPECT_FALSE(file_exists());
}

TEST_F(OpenTest, RefusesAFaultPlanThatItDoesNotUnderstand)
{
    options_.faults = "write:EIO";
    EXPECT_EQ(create_medium(options_, four_pages).error().code, SP_E_INVALID_ARGUMENT);
    EXPECT_FALSE(file_exists());
}

TEST_F(OpenTest, TakesTheFaultPlanOfTheEnvironment)
{
    const int result = in_child([&] {
        setenv("STILLPOINT_FAULT", "fallocate:ENOSPC@1", 1);
        const auto medium = create_medium(options_, four_pages);
        return medium ? 1 : static_cast<int>(medium.error().code);
    });
    EXPECT_EQ(result, SP_E_NO_SPACE);
}

/// From here on the system call `number` fails with EPERM in this process.
bool forbid(unsigned number)
{
    sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    sock_fprog program{.len = 4, .filter = filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

int write_two_pages(Medium& medium)
{
    const auto pages = test::numbered_pages(2);
    const BlockWrite batch[] = {test::write_of(pages[0], 0), test::write_of(pages[1], 3)};
    if (!medium.write(batch) || !medium.sync()) {
        return 1;
    }
    return test::page_value(medium, 0) == 1 && test::page_value(medium, 3) == 2 ? 0 : 2;
}

TEST_F(OpenTest, WritesWithoutIoUringWhereASandboxForbidsIt)
{
    const int result = in_child([&] {
        if (!forbid(SYS_io_uring_setup)) {
            return 100;
        }
        auto medium = create_medium(options_, four_pages);
        if (!medium || (*medium)->mechanism().starts_with("io_uring")) {
            return 101;
        }
        return write_two_pages(**medium);
    });
    EXPECT_EQ(result, 0);
}

TEST_F(OpenTest, WritesOnWhenASandboxForbidsIoUringLater)
{
    const int result = in_child([&] {
        auto medium = create_medium(options_, four_pages);
        if (!medium || !forbid(SYS_io_uring_enter)) {
            return 100;
        }
        if (const int wrong = write_two_pages(**medium); wrong != 0) {
            return wrong;
        }
        return (*medium)->mechanism().starts_with("io_uring") ? 3 : 0;
    });
    EXPECT_EQ(result, 0);
}

TEST_F(OpenTest, ReportsAFileSystemThatIsReallyFull)
{
    constexpr int not_permitted = 77;
    const int result = in_child([&] {
        const std::string place = directory_.path();
        if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            mount("tmpfs", place.c_str(), "tmpfs", 0, "size=1m") != 0) {
            return not_permitted;
        }
        const auto too_large = create_medium(options_, 2 * mib);
        if (too_large || too_large.error().code != SP_E_NO_SPACE || file_exists()) {
            return 1;
        }
        auto medium = create_medium(options_, mib / 2);
        if (!medium || (*medium)->resize(2 * mib).error().code != SP_E_NO_SPACE) {
            return 2;
        }
        struct stat facts{};
        if (stat(options_.path.c_str(), &facts) != 0 || facts.st_size != off_t{mib / 2}) {
            return 3;
        }
        return (*medium)->resize(3 * mib / 4) ? 0 : 4;
    });
    if (result == not_permitted) {
        GTEST_SKIP() << "no right to mount a small file system here; faults stand in for it";
    }
    EXPECT_EQ(result, 0);
}

}  // namespace
}  // namespace stillpoint

// Pools on file systems without unnamed files, where a new pool has its name from the beginning:
//   - Whenever the process is killed while it makes one, nvm_pool_obtain makes or opens it the next time.
//   - A file that is not a pool stays as it is.

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "stillpoint/breeze.h"
#include "support/breeze_lists.hpp"
#include "support/temporary_directory.hpp"

namespace stillpoint::breeze::testing {
namespace {

constexpr std::size_t pool_bytes = 4 << 20;

/// openat() of unnamed files fails in this process from here on, as on NFS.
bool refuse_unnamed_files()
{
    constexpr auto flags_offset = static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 2 * sizeof(std::uint64_t));
    sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, flags_offset),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, O_TMPFILE),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, O_TMPFILE, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{std::size(filter), filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/// Obtains the pool, links a new node to its root, and closes it. The number of nodes; 0: something failed.
int add_node(const std::string& path)
{
    NVM_POOL* const pool = nvm_pool_obtain(path.c_str(), pool_bytes);
    if (pool == nullptr || nvm_tx_begin(pool) != SP_OK) {
        std::fprintf(stderr, "%s\n", sp_last_error());
        return 0;
    }
    auto* const node = static_cast<Node*>(nvm_alloc(pool, NVM_TYPE_ID(Node), sizeof(Node)));
    node->next = static_cast<Node*>(nvm_pool_root(pool));
    bool fits = nvm_pool_set_root(pool, node) == SP_OK && nvm_tx_commit(pool) == SP_OK;
    int count = 0;
    for (const Node* at = node; at != nullptr; at = at->next) {
        ++count;
    }
    fits = nvm_pool_close(pool) == SP_OK && fits;
    return fits ? count : 0;
}

/// A child that makes the pool and is killed at that persist point. False: it has done its work before.
bool is_killed_at(const std::string& path, int point)
{
    const pid_t child = fork();
    if (child == 0) {
        setenv("STILLPOINT_FAULT", ("persist:kill@" + std::to_string(point)).c_str(), 1);
        _exit(refuse_unnamed_files() && add_node(path) == 1 ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << "point " << point;
    return WIFSIGNALED(status);
}

void obtain_after_kills(const char* medium)
{
    const test::TemporaryDirectory directory;
    setenv("STILLPOINT_MEDIUM", medium, 1);
    int unfinished = 0;
    int whole = 0;
    for (int point = 1; whole < 4; ++point) {  // Later kills are those of any pool.
        ASSERT_LT(point, 500);
        const std::string path = directory.file("pool-" + std::to_string(point));
        ASSERT_TRUE(is_killed_at(path, point));
        NVM_POOL* const opened = nvm_pool_open(path.c_str());
        unfinished += opened == nullptr && access(path.c_str(), F_OK) == 0 ? 1 : 0;
        if (opened != nullptr) {
            ++whole;
            ASSERT_EQ(nvm_pool_close(opened), SP_OK);
        }
        const int nodes = add_node(path);
        ASSERT_TRUE(nodes == 1 || nodes == 2) << "killed at point " << point << ": " << sp_last_error();
        unlink(path.c_str());
    }
    EXPECT_GT(unfinished, 2);
    unsetenv("STILLPOINT_MEDIUM");
}

TEST(BreezeObtain, MakesAPoolOnAFileWhoseCreationWasKilled) { obtain_after_kills("file"); }
TEST(BreezeObtain, MakesAMappedPoolWhoseCreationWasKilled) { obtain_after_kills("memory"); }

TEST(BreezeObtain, MakesAPoolOfAnEmptyFileAndOfNoOther)
{
    const test::TemporaryDirectory directory;
    const std::string empty = directory.file("empty");
    std::ofstream(empty).flush();
    EXPECT_EQ(add_node(empty), 1);
    const std::string foreign = directory.file("foreign");
    std::vector<char> bytes(64 << 10);
    bytes.back() = 1;
    std::ofstream(foreign).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    EXPECT_EQ(nvm_pool_obtain(foreign.c_str(), pool_bytes), nullptr);
    std::vector<char> found(bytes.size());
    std::ifstream(foreign).read(found.data(), static_cast<std::streamsize>(found.size()));
    EXPECT_EQ(found, bytes);
}

}  // namespace
}  // namespace stillpoint::breeze::testing

// The runtime against SIGKILL at random moments, with three threads and hooks called by hand.
//
// Invariants, each time the pool is opened again:
//   The accounts have the sum that they began with: no transfer was cut in two.
//   Each thread's counter is at least what it had acknowledged, and its list has as many nodes as its counter says.
//   Locks that were held are free.

#include <atomic>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "undo-hooks.h"

extern "C" {
bool nvhooks_is_nvm(const void* address);
void nvhooks_pre_nvm_write(void* address, std::size_t size_bytes);
void nvhooks_post_nvm_write(void* address, std::size_t size_bytes);
}

namespace {

constexpr unsigned threads = 3;
constexpr unsigned account_count = 16;
constexpr std::int64_t opening_balance = 1000;
constexpr std::uint64_t nodes_max = 400;

struct Node {
    Node* next;
    std::uint64_t number;
    char filler[200];
};
struct Account {
    undo_rwlock lock;
    std::int64_t balance;
};
struct Owner {
    Node* first;
    std::uint64_t nodes;
    std::uint64_t done;
};
struct Root {
    bool begun;
    Account accounts[account_count];
    Owner owners[threads];
};
/// Shared by the parent and the child that is killed.
struct Acknowledged {
    std::atomic<std::uint64_t> done[threads];
};

template <class T>
void store(T& place, T value)
{
    nvhooks_pre_nvm_write(&place, sizeof place);
    place = value;
    nvhooks_post_nvm_write(&place, sizeof place);
}

void transfer(Root& root, unsigned from, unsigned to, std::int64_t amount)
{
    Account& low = root.accounts[std::min(from, to)];
    Account& high = root.accounts[std::max(from, to)];
    undo_fase_begin();
    undo_write_lock(&low.lock);
    undo_write_lock(&high.lock);
    store(root.accounts[from].balance, root.accounts[from].balance - amount);
    undo_unlock(&high.lock);  // inside the FASE: no thread may have it before the FASE has ended
    store(root.accounts[to].balance, root.accounts[to].balance + amount);
    undo_unlock(&low.lock);
    undo_fase_end();
}

void one_step(Owner& owner, std::mt19937_64& random)
{
    undo_fase_begin();
    if (owner.nodes < nodes_max && random() % 3 != 0) {
        auto* node = static_cast<Node*>(undo_alloc(sizeof(Node)));
        if (node == nullptr) {
            _exit(3);
        }
        *node = {owner.first, owner.done, {}};
        nvhooks_post_nvm_write(node, sizeof *node);
        store(owner.first, node);
        store(owner.nodes, owner.nodes + 1);
    } else {
        for (unsigned i = 0; i < 1 + random() % 40 && owner.first != nullptr; ++i) {
            Node* node = owner.first;
            store(owner.first, node->next);
            store(owner.nodes, owner.nodes - 1);
            undo_free(node);
        }
    }
    store(owner.done, owner.done + 1);
    undo_fase_end();
}

[[noreturn]] void work_for_ever(const char* path, Acknowledged& acknowledged, std::uint64_t seed)
{
    if (undo_open(path, 4u << 20) != 0) {
        _exit(2);
    }
    auto& root = *static_cast<Root*>(undo_root(sizeof(Root)));
    undo_fase_begin();
    for (unsigned i = 0; i < account_count && !root.begun; ++i) {
        store(root.accounts[i].balance, opening_balance);
    }
    store(root.begun, true);
    undo_fase_end();
    std::vector<std::thread> running;
    for (unsigned number = 0; number < threads; ++number) {
        running.emplace_back([&, number] {
            std::mt19937_64 random(seed * threads + number);
            while (true) {
                const unsigned from = static_cast<unsigned>(random() % account_count);
                transfer(root, from, (from + 1 + static_cast<unsigned>(random() % (account_count - 1))) % account_count,
                         static_cast<std::int64_t>(random() % 100));
                one_step(root.owners[number], random);
                acknowledged.done[number] = root.owners[number].done;
            }
        });
    }
    for (std::thread& thread : running) {
        thread.join();
    }
    _exit(4);
}

/// The error in a pool that was opened after a kill; empty if nothing is.
std::string check(Root& root, const Acknowledged& acknowledged)
{
    std::int64_t sum = 0;
    for (Account& account : root.accounts) {
        undo_write_lock(&account.lock);
        sum += account.balance;
        undo_unlock(&account.lock);
    }
    if (root.begun && sum != opening_balance * account_count) {
        return "the accounts add up to " + std::to_string(sum);
    }
    for (unsigned number = 0; number < threads; ++number) {
        const Owner& owner = root.owners[number];
        std::uint64_t nodes = 0;
        for (const Node* node = owner.first; node != nullptr && nodes <= nodes_max; node = node->next) {
            ++nodes;
        }
        if (nodes != owner.nodes || owner.done < acknowledged.done[number]) {
            return "thread " + std::to_string(number) + ": " + std::to_string(nodes) + " nodes of " + std::to_string(owner.nodes) + ", " +
                   std::to_string(owner.done) + " steps, acknowledged " + std::to_string(acknowledged.done[number]);
        }
    }
    return "";
}

/// 40 in `make test`; STILLPOINT_UNDO_KILLS asks for another number.
unsigned kills_wanted()
{
    const char* asked = getenv("STILLPOINT_UNDO_KILLS");
    return asked != nullptr ? static_cast<unsigned>(std::strtoul(asked, nullptr, 10)) : 40;
}

TEST(UndoKill, KillsAtRandomMomentsLoseNothingThatHadEnded)
{
    const auto path = std::filesystem::temp_directory_path() / ("undo-kill-" + std::to_string(getpid()) + ".pool");
    std::filesystem::remove(path);
    void* shared = mmap(nullptr, sizeof(Acknowledged), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(shared, MAP_FAILED);
    auto& acknowledged = *new (shared) Acknowledged;
    std::mt19937_64 random(11);
    std::uint64_t steps = 0;
    for (unsigned kill_number = 0; kill_number < kills_wanted(); ++kill_number) {
        const pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            work_for_ever(path.c_str(), acknowledged, kill_number);
        }
        usleep(static_cast<useconds_t>(random() % 40'000));
        kill(child, SIGKILL);
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        ASSERT_TRUE(WIFSIGNALED(status)) << "it ended with exit code " << WEXITSTATUS(status);
        ASSERT_EQ(undo_open(path.c_str(), 4u << 20), 0) << undo_error();
        auto& root = *static_cast<Root*>(undo_root(sizeof(Root)));
        ASSERT_EQ(check(root, acknowledged), "") << "after kill " << kill_number;
        steps = root.owners[0].done + root.owners[1].done + root.owners[2].done;
        undo_close();
    }
    EXPECT_GT(steps, 0u);
    std::filesystem::remove(path);
}

TEST(UndoOpen, RefusesWhatIsNoPoolAndChangesNothing)
{
    const auto path = std::filesystem::temp_directory_path() / ("undo-open-" + std::to_string(getpid()) + ".pool");
    std::filesystem::remove(path);
    EXPECT_EQ(undo_open(path.c_str(), 1000), EINVAL);
    EXPECT_NE(std::string(undo_error()).find("1 MiB"), std::string::npos) << undo_error();
    EXPECT_FALSE(std::filesystem::exists(path));
    ASSERT_EQ(undo_open(path.c_str(), 1u << 20), 0) << undo_error();
    EXPECT_STRNE(undo_durability(), "none");
    EXPECT_EQ(undo_open(path.c_str(), 1u << 20), EBUSY);
    undo_close();
    // Every byte of the header that never changes.
    for (off_t at = 0; at < 80; ++at) {
        FILE* file = fopen(path.c_str(), "r+b");
        ASSERT_NE(file, nullptr);
        ASSERT_EQ(fseek(file, at, SEEK_SET), 0);
        const int byte = fgetc(file);
        ASSERT_EQ(fseek(file, at, SEEK_SET), 0);
        fputc(byte ^ 0x10, file);
        fclose(file);
        EXPECT_EQ(undo_open(path.c_str(), 1u << 20), EINVAL) << "byte " << at;
        undo_close();
        file = fopen(path.c_str(), "r+b");
        ASSERT_EQ(fseek(file, at, SEEK_SET), 0);
        fputc(byte, file);
        fclose(file);
    }
    EXPECT_EQ(undo_open(path.c_str(), 1u << 20), 0) << undo_error();
    undo_close();
    std::filesystem::resize_file(path, 900'000);
    EXPECT_EQ(undo_open(path.c_str(), 1u << 20), EINVAL);
    std::filesystem::remove(path);
}

}  // namespace

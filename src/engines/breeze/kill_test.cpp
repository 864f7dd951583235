// Processes with threads are killed, and the pool is opened again, at other addresses at every other start:
//   - Every transaction whose commit returned is there, and at most one more of each thread.
//   - Reference counts are exact, and nothing is kept that cannot be reached.

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <random>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "engines/breeze/open_pools.hpp"
#include "support/breeze_lists.hpp"
#include "support/temporary_directory.hpp"

namespace stillpoint::breeze::testing {
namespace {

constexpr unsigned threads = 2;
constexpr std::uint64_t length_max = 60;
nvm_options on(const char* medium)
{
    return {.medium = medium, .durability = "process", .base_address = 0, .threads = 2, .collect = 0, .stays = 0};
}

/// Memory that the parent and all children share: the promises.
struct Promises {
    std::atomic<std::uint64_t> begun[threads];
    std::atomic<std::uint64_t> committed[threads];
    std::atomic<std::uint64_t> base;
};

/// Adds a node with the next number; now and then the older half of the list goes.
void add(NVM_POOL* pool, Lists& all, unsigned thread, std::uint64_t number)
{
    if (nvm_tx_begin(pool) != SP_OK) {
        _exit(2);
    }
    auto* const node = static_cast<Node*>(nvm_alloc(pool, NVM_TYPE_ID(Node), sizeof(Node)));
    if (node == nullptr) {
        _exit(3);
    }
    node->value = number;
    node->next = all.heads[thread];
    NVM_SET(all.heads[thread], node);
    std::uint64_t length = 0;
    for (Node* at = node; at != nullptr; at = at->next) {
        if (++length == length_max / 2 && number % (length_max / 2) == 0) {
            NVM_SET(at->next, nullptr);
        }
    }
    if (nvm_tx_commit(pool) != SP_OK) {
        _exit(4);
    }
}

void check_promises(NVM_POOL* pool, const Promises& promises)
{
    const auto* const all = static_cast<Lists*>(nvm_pool_root(pool));
    std::uint64_t reachable = 1;
    for (unsigned thread = 0; thread < threads; ++thread) {
        const Node* node = all->heads[thread];
        std::uint64_t number = node == nullptr ? 0 : node->value;
        if (number < promises.committed[thread] || number > promises.begun[thread]) {
            _exit(5);
        }
        for (; node != nullptr; node = node->next, --number) {
            ++reachable;
            if (node->value != number) {
                _exit(6);
            }
        }
    }
    const auto complaint = complaint_of_counts(*open_pool(pool).value(), reachable);
    if (complaint) {
        std::fprintf(stderr, "%s\n", complaint->c_str());
        _exit(7);
    }
}

[[noreturn]] void run_child(const std::string& path, const nvm_options& options, Promises& promises, bool takes_address)
{
    if (takes_address) {
        void* const place = reinterpret_cast<void*>(promises.base.load());
        if (mmap(place, page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != place) {
            _exit(8);
        }
    }
    NVM_POOL* const pool = nvm_pool_open_with(path.c_str(), &options);
    if (pool == nullptr) {
        std::fprintf(stderr, "%s\n", sp_last_error());
        _exit(9);
    }
    nvm_pool_facts facts;
    nvm_facts(pool, &facts);
    // Without that it may lie elsewhere too: the one before may have died after it had moved the pool.
    if (takes_address && facts.base_address == promises.base) {
        _exit(10);
    }
    promises.base = facts.base_address;
    check_promises(pool, promises);
    auto& all = *static_cast<Lists*>(nvm_pool_root(pool));
    std::vector<std::thread> running;
    for (unsigned thread = 0; thread < threads; ++thread) {
        running.emplace_back([&, thread] {
            for (std::uint64_t number = all.heads[thread] == nullptr ? 1 : all.heads[thread]->value + 1;; ++number) {
                promises.begun[thread] = number;
                add(pool, all, thread, number);
                promises.committed[thread] = number;
            }
        });
    }
    for (std::thread& thread : running) {
        thread.join();
    }
    _exit(11);
}

/// Until a thread has committed something, on a slow machine too; a child that has ended commits nothing.
void await_commit(const Promises& promises)
{
    const std::uint64_t before = promises.committed[0];
    for (int waits = 0; promises.committed[0] == before && waits < 10'000; ++waits) {
        usleep(1'000);
    }
}

void kill_and_open(const char* medium, const std::string& folder)
{
    const nvm_options options = on(medium);
    const char* const wanted = std::getenv("STILLPOINT_BREEZE_KILLS");
    const int kills = wanted != nullptr ? std::atoi(wanted) : 24;
    const test::TemporaryDirectory directory(folder);
    const std::string path = directory.file("pool");
    void* const shared = mmap(nullptr, sizeof(Promises), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(shared, MAP_FAILED);
    auto& promises = *new (shared) Promises{};
    NVM_POOL* const pool = nvm_pool_create_with(path.c_str(), 4 << 20, &options);
    ASSERT_NE(pool, nullptr) << sp_last_error();
    ASSERT_EQ(nvm_tx_begin(pool), SP_OK);
    ASSERT_EQ(nvm_pool_set_root(pool, nvm_alloc(pool, NVM_TYPE_ID(Lists), sizeof(Lists))), SP_OK);
    ASSERT_EQ(nvm_tx_commit(pool), SP_OK);
    promises.base = open_pool(pool).value()->parts().base();
    ASSERT_EQ(nvm_pool_close(pool), SP_OK);
    std::mt19937_64 random(1);
    for (int i = 0; i < kills; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            run_child(path, options, promises, i % 2 == 1);
        }
        usleep(static_cast<useconds_t>(5'000 + random() % 60'000));
        if (i % 3 == 2) {
            await_commit(promises);
        }
        kill(child, SIGKILL);
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        ASSERT_TRUE(WIFSIGNALED(status)) << "the child ended with " << WEXITSTATUS(status) << " at start " << i;
    }
    EXPECT_GT(promises.committed[0], 0u);
    munmap(shared, sizeof(Promises));
}

TEST(BreezeKills, LoseNoTransactionAndLeakNothingOnMappedMemory) { kill_and_open("memory", "/dev/shm"); }
TEST(BreezeKills, LoseNoTransactionAndLeakNothingOnAFile) { kill_and_open("file", {}); }

}  // namespace
}  // namespace stillpoint::breeze::testing

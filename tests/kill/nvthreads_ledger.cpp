// For the kill loop: threads move money, replace blocks and pass a queue's entries on, under locks that nest and overlap. Every section
// that has ended was told before the kill, and must be there after it; no section is there by half, and none without what it has seen.
//
// What it was told, it notes in a file that it maps. Compiled by `stillpoint c++ --runtime=nvthreads`, run with acknowledge=unlock; or with
// acknowledge=order and the word `order`: then each thread is told by a wait after every few sections. With threads=processes and the word
// `dying`, thread 0 kills the process of another one again and again: what is left must be whole, and a new thread goes on.
//
// Usage: nvthreads_ledger ACKNOWLEDGED THREADS OPERATIONS [order|dying]

#include <array>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <random>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <nvthreads-hooks.h>

namespace {

constexpr std::size_t threads_max = 8;
constexpr std::size_t account_count = 64;
constexpr std::int64_t opening_balance = 1000;
constexpr std::size_t slot_count = 32;

struct Node {
    std::uint64_t number;
    std::uint64_t inverse;
    Node* next;
};

struct Ledger {
    std::int64_t accounts[account_count];
    std::uint64_t transfers[account_count];  ///< of each account
    std::uint64_t done[threads_max];  ///< the newest section of each thread
    Node* slots[threads_max][slot_count];
    Node* first;
    Node* last;
    std::uint64_t pushed;
    std::uint64_t popped;
    std::uint64_t passed_on;  ///< counted by sections that hold the queue's lock no more
    struct {
        std::uint64_t number;
        std::uint64_t inverse;
    } own[threads_max];
};

/// The mapped file.
struct Told {
    std::uint64_t epoch;
    std::uint64_t done[threads_max];
    std::uint64_t deaths;  ///< of single threads
};

Ledger* ledger = nullptr;
Told* told = nullptr;
std::array<std::mutex, account_count> account_locks;
std::array<std::mutex, threads_max> own_locks;
std::mutex queue_lock;
std::mutex passed_lock;
std::atomic<std::uint64_t> left{0};
bool unlocks_wait = true;
bool are_dying = false;
std::array<std::atomic<pid_t>, threads_max> processes;

[[noreturn]] void broken(const char* what)
{
    std::printf("BROKEN: %s\n", what);
    std::fflush(stdout);
    _exit(1);
}

/// The locks of both accounts are held.
void transfer(std::size_t from, std::size_t to, std::int64_t amount)
{
    ledger->accounts[from] -= amount;
    ledger->accounts[to] += amount;
    ++ledger->transfers[from];
    ++ledger->transfers[to];
}

void replace_block(std::size_t thread, std::uint64_t number)
{
    Node*& slot = ledger->slots[thread][number % slot_count];
    auto* const made = static_cast<Node*>(sp_malloc(sizeof(Node)));
    if (made == nullptr) {
        broken("no memory");
    }
    made->number = number;
    made->inverse = ~number;
    made->next = nullptr;
    sp_free(slot);
    slot = made;
}

/// The queue's lock is given away before the section ends.
void pass_on(std::uint64_t number)
{
    std::unique_lock queue(queue_lock);
    std::unique_lock passed(passed_lock);
    if (number % 2 == 0) {
        auto* const made = static_cast<Node*>(sp_malloc(sizeof(Node)));
        if (made == nullptr) {
            broken("no memory");
        }
        made->number = number;
        made->inverse = ~number;
        made->next = nullptr;
        (ledger->last != nullptr ? ledger->last->next : ledger->first) = made;
        ledger->last = made;
        ++ledger->pushed;
    } else if (Node* const gone = ledger->first; gone != nullptr) {
        ledger->first = gone->next;
        if (ledger->first == nullptr) {
            ledger->last = nullptr;
        }
        ++ledger->popped;
        sp_free(gone);
    } else {
        return;
    }
    queue.unlock();
    ++ledger->passed_on;
}

void work(std::size_t thread)
{
    processes[thread].store(getpid());
    std::mt19937_64 random(std::random_device{}());
    for (std::uint64_t number = ledger->done[thread] + 1; left.fetch_sub(1) - 1 < UINT64_MAX / 2; ++number) {
        std::unique_lock own(own_locks[thread]);
        ledger->done[thread] = number;
        // A section of one lock has handed nothing over: then its thread's death is its own.
        switch (are_dying && random() % 8 != 0 ? 3 : random() % 3) {
        case 0: {
            const std::size_t one = random() % account_count;
            const std::size_t other = random() % account_count;
            if (one != other) {
                const std::lock_guard low(account_locks[one < other ? one : other]);
                const std::lock_guard high(account_locks[one < other ? other : one]);
                transfer(one, other, static_cast<std::int64_t>(random() % 100));
            }
            break;
        }
        case 1: replace_block(thread, number); break;
        case 2: pass_on(number); break;
        default: ledger->own[thread] = {number, ~number};
        }
        own.unlock();
        if (unlocks_wait || (number % 16 == 0 && sp_wait_durable(sp_epoch(), -1) == SP_OK)) {
            told->done[thread] = number;  // The section is durable.
        }
        if (thread == 0 && number % 64 == 0) {
            told->epoch = sp_durable_epoch();
        }
    }
}

void check()
{
    std::int64_t sum = 0;
    std::uint64_t sides = 0;
    for (std::size_t i = 0; i < account_count; ++i) {
        sum += ledger->accounts[i];
        sides += ledger->transfers[i];
    }
    if (sum != static_cast<std::int64_t>(account_count) * opening_balance) {
        broken("the accounts have another sum");
    }
    if (sides % 2 != 0) {
        broken("a transfer has one side only");
    }
    std::uint64_t length = 0;
    for (const Node* node = ledger->first; node != nullptr; node = node->next) {
        if (node->inverse != ~node->number) {
            broken("an entry of the queue is torn");
        }
        ++length;
    }
    if (length != ledger->pushed - ledger->popped) {
        broken("the queue lacks an entry");
    }
    if (ledger->passed_on != ledger->pushed + ledger->popped) {
        broken("a section that gave the queue away is there by half");
    }
    for (std::size_t thread = 0; thread < threads_max; ++thread) {
        for (const Node* const node : ledger->slots[thread]) {
            if (node != nullptr && (node->inverse != ~node->number || node->number > ledger->done[thread])) {
                broken("a block is torn, or belongs to a section that is lost");
            }
        }
        const auto& own = ledger->own[thread];
        if (own.number > ledger->done[thread] || (own.number != 0 && own.inverse != ~own.number)) {
            broken("a section of one lock is there by half");
        }
        if (ledger->done[thread] < told->done[thread]) {
            std::printf("LOST: thread %zu was told of section %" PRIu64 ", and %" PRIu64 " is there\n", thread, told->done[thread],
                        ledger->done[thread]);
            std::fflush(stdout);
            _exit(1);
        }
    }
}

/// All locks are free, or become so: the dead thread's are released.
void check_running()
{
    std::vector<std::unique_lock<std::mutex>> held;
    for (std::mutex& lock : own_locks) {
        held.emplace_back(lock);
    }
    held.emplace_back(queue_lock);
    held.emplace_back(passed_lock);
    check();
}

void kill_threads(std::vector<std::thread>& threads)
{
    std::mt19937_64 random(std::random_device{}());
    while (left.load() - 1 < UINT64_MAX / 2) {
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 6000));
        const std::size_t victim = 1 + random() % threads.size();
        const pid_t process = processes[victim].exchange(0);
        if (process == 0) {
            continue;  // A new thread that has not begun.
        }
        kill(process, SIGKILL);
        threads[victim - 1].join();
        ++told->deaths;
        check_running();
        threads[victim - 1] = std::thread(work, victim);
    }
}

}  // namespace

int main(int count, char** arguments)
{
    are_dying = count == 5 && std::strcmp(arguments[4], "dying") == 0;
    unlocks_wait = count == 4 || are_dying;
    if (!unlocks_wait && (count != 5 || std::strcmp(arguments[4], "order") != 0)) {
        std::fputs("Usage: nvthreads_ledger ACKNOWLEDGED THREADS OPERATIONS [order|dying]\n", stderr);
        return 64;
    }
    const int file = open(arguments[1], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void* const mapped = file >= 0 && ftruncate(file, sizeof(Told)) == 0
                             ? mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                             : MAP_FAILED;
    if (mapped == MAP_FAILED) {
        std::perror(arguments[1]);
        return 1;
    }
    told = static_cast<Told*>(mapped);
    ledger = static_cast<Ledger*>(sp_root("ledger", sizeof(Ledger)));
    if (ledger == nullptr) {
        std::fprintf(stderr, "%s\n", sp_last_error());
        return 1;
    }
    {
        const std::lock_guard guard(own_locks[0]);
        if (ledger->accounts[0] == 0 && ledger->transfers[0] == 0) {
            for (std::int64_t& account : ledger->accounts) {
                account = opening_balance;
            }
        }
    }
    check();
    std::printf("ledger: %" PRIu64 " sections of thread 0 at the start\n", ledger->done[0]);
    std::fflush(stdout);
    left.store(std::strtoull(arguments[3], nullptr, 10));
    std::vector<std::thread> threads;
    for (std::size_t i = 1; i < std::strtoull(arguments[2], nullptr, 10); ++i) {
        threads.emplace_back(work, i);
    }
    are_dying ? kill_threads(threads) : work(0);
    for (std::thread& thread : threads) {
        thread.join();
    }
    check();
    std::puts("ledger done");
    return 0;
}

// A program of transactions that tells when a crash has broken it: tests/kill/kill_loop.py kills it.
//
// Usage: spht_ledger ACKNOWLEDGED THREADS OPERATIONS [wait [PAUSE_MS]]
// With `wait` a thread whose operation is refused says so, and does nothing more: tests/cluster ends the program. PAUSE_MS: between two
// operations of a thread.
// Threads number their transactions of each of four kinds: transfers between accounts, entries of a map whose nodes are allocated and
// freed, texts of many words, and a queue through which threads hand numbers to each other. ACKNOWLEDGED is a file in which each thread
// notes, by a store to shared memory, which transaction it begins and which has returned. At the start and at the end there must be, of
// each thread and kind, exactly its transactions up to one between those.

#include <array>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "stillpoint/spht.hpp"
#include "told.hpp"

namespace {

namespace spht = stillpoint::spht;

enum Kind : unsigned { transfers, entries, texts, handovers, kind_count };
constexpr const char* kind_names[] = {"transfers", "entries", "texts", "handovers"};
constexpr unsigned threads_max = 16;
constexpr std::uint64_t slots = 40;
constexpr std::uint64_t account_count = 64;
constexpr std::uint64_t text_words = 600;

using Promises = Told<kind_count, threads_max>;

struct Node {
    std::uint64_t number;
    std::uint64_t check;  ///< ~number
    Node* next;
};

struct Ledger {
    std::int64_t accounts[account_count];
    struct alignas(64) Thread {
        std::uint64_t done[kind_count];
        Node* entries[slots];
        std::uint64_t text[text_words];  ///< each word has the number of the newest text
    } threads[threads_max];
    Node* first;
    Node* last;
    std::uint64_t pushed;
    std::uint64_t popped;
};

Promises* told = nullptr;
Ledger* ledger = nullptr;
std::atomic<bool> is_over{false};

/// A body may end by an exception of its own: what it did is rolled back.
struct ChangedItsMind {};

void perform(Kind kind, unsigned thread, std::uint64_t number, std::mt19937_64& random)
{
    Ledger::Thread& own = ledger->threads[thread];
    const std::uint64_t from = random() % account_count;
    const std::uint64_t to = random() % account_count;
    const auto amount = static_cast<std::int64_t>(random() % 100);
    spht::atomically([&](spht::transaction& tx) {
        tx.write(own.done[kind], number);
        switch (kind) {
        case transfers:
            tx.write(ledger->accounts[from], tx.read(ledger->accounts[from]) - amount);
            tx.write(ledger->accounts[to], tx.read(ledger->accounts[to]) + amount);
            break;
        case entries: {
            Node*& place = own.entries[number % slots];
            if (Node* const old = tx.read(place); old != nullptr) {
                tx.free(old);
            }
            tx.write(place, tx.create(Node{number, ~number, nullptr}));
            break;
        }
        case texts:
            for (std::uint64_t& word : own.text) {
                tx.write(word, number);
            }
            break;
        default:
            if (number % 2 == 0) {
                Node* const made = tx.create(Node{number, ~number, nullptr});
                Node* const last = tx.read(ledger->last);
                tx.write(last != nullptr ? last->next : ledger->first, made);
                tx.write(ledger->last, made);
                tx.write(ledger->pushed, tx.read(ledger->pushed) + 1);
            } else if (Node* const first = tx.read(ledger->first); first != nullptr) {
                Node* const next = tx.read(first->next);
                tx.write(ledger->first, next);
                if (next == nullptr) {
                    tx.write(ledger->last, next);
                }
                tx.free(first);
                tx.write(ledger->popped, tx.read(ledger->popped) + 1);
            }
        }
        if (number % 64 == 63 && random() % 4 == 0) {
            throw ChangedItsMind{};
        }
    });
}

using Numbers = std::array<std::uint64_t, kind_count>;

void work(unsigned thread, Numbers done, std::uint64_t operations)
{
    std::mt19937_64 random(std::random_device{}());
    Promises::Thread& own = told->threads[thread];
    for (std::uint64_t i = 0; i < operations && !is_over; ++i) {
        const auto kind = static_cast<Kind>(random() % kind_count);
        own.begun[kind] = ++done[kind];
        try {
            perform(kind, thread, done[kind], random);
        } catch (const ChangedItsMind&) {
            --done[kind];
            continue;
        } catch (const std::exception& error) {
            stop_where_refused(error.what());
            std::printf("BROKEN: transaction %" PRIu64 " of %s failed: %s\n", done[kind], kind_names[kind], error.what());
            std::fflush(stdout);
            is_over = true;
            return;
        }
        own.acknowledged[kind] = done[kind];
        if (i % 16 == 0) {
            told->durable_epoch = sp_durable_epoch();
        }
        pause_between_operations();
    }
}

/// The thread's entries and text fit its numbers.
std::string problem_of(unsigned thread)
{
    const Ledger::Thread& own = ledger->threads[thread];
    for (std::uint64_t back = 0; back < slots && back < own.done[entries]; ++back) {
        const std::uint64_t number = own.done[entries] - back;
        const Node* const node = own.entries[number % slots];
        if (node == nullptr || node->number != number || node->check != ~number) {
            return " BROKEN: entry " + std::to_string(number) + " of thread " + std::to_string(thread);
        }
    }
    for (const std::uint64_t word : own.text) {
        if (word != own.done[texts]) {
            return " BROKEN: the text of thread " + std::to_string(thread);
        }
    }
    return "";
}

std::string problem()
{
    std::int64_t sum = 0;
    for (const std::int64_t account : ledger->accounts) {
        sum += account;
    }
    std::uint64_t queued = 0;
    const Node* last = nullptr;
    for (const Node* node = ledger->first; node != nullptr; node = node->next) {
        last = node;
        ++queued;
    }
    std::string wrong = sum != 0 ? " BROKEN: the accounts have " + std::to_string(sum) : "";
    if (queued != ledger->pushed - ledger->popped || last != ledger->last) {
        wrong += " BROKEN: the queue has " + std::to_string(queued) + " nodes";
    }
    return wrong;
}

/// No other thread runs. What each thread has done; says what is wrong.
std::vector<Numbers> check(unsigned threads, const char* when)
{
    std::vector<Numbers> done(threads);
    std::string wrong = problem();
    Numbers sums{};
    for (unsigned thread = 0; thread < threads; ++thread) {
        wrong += problem_of(thread);
        for (unsigned kind = 0; kind < kind_count; ++kind) {
            const std::uint64_t is = ledger->threads[thread].done[kind];
            done[thread][kind] = is;
            sums[kind] += is;
            wrong += told->problem(thread, kind, kind_names[kind], is);
        }
    }
    std::printf("ledger %s: %" PRIu64 " transfers, %" PRIu64 " entries, %" PRIu64 " texts, %" PRIu64 " handovers%s\n", when,
                sums[transfers], sums[entries], sums[texts], sums[handovers], wrong.c_str());
    std::fflush(stdout);
    return done;
}

int run(const char* path, unsigned threads, std::uint64_t operations)
{
    told = Promises::open(path);
    ledger = static_cast<Ledger*>(sp_root("ledger", sizeof(Ledger)));
    if (ledger == nullptr) {
        throw std::runtime_error(sp_last_error());
    }
    const std::vector<Numbers> done = check(threads, "at the start");
    for (unsigned thread = 0; thread < threads; ++thread) {
        told->note_start(thread, done[thread]);
    }
    told->has_begun = 1;
    std::vector<std::thread> all;
    for (unsigned thread = 0; thread < threads; ++thread) {
        all.emplace_back(work, thread, done[thread], operations);
    }
    for (std::thread& thread : all) {
        thread.join();
    }
    check(threads, "done");
    return is_over ? 1 : 0;
}

}  // namespace

int main(int count, char** words)
{
    const unsigned threads = threads_in(count, words, threads_max);
    if (threads == 0) {
        std::fputs("Usage: spht_ledger ACKNOWLEDGED THREADS OPERATIONS [wait [PAUSE_MS]]\n", stderr);
        return 64;
    }
    try {
        return run(words[1], threads, std::strtoull(words[3], nullptr, 10));
    } catch (const std::exception& error) {
        std::printf("BROKEN: %s\n", error.what());
        return 1;
    }
}

// Transactions of several threads are isolated, and what one of them has made private is its thread's own.

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "pool_fixture.hpp"
#include "stillpoint/itm.h"

namespace {

class Threads : public InBothMemories {};
STILLPOINT_IN_BOTH_MEMORIES(Threads);

constexpr int thread_count = 4;

template <class Work>
void run_threads(Work work)
{
    std::vector<std::thread> threads;
    for (int i = 0; i < thread_count; ++i) {
        threads.emplace_back([=] { work(i); });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

struct Accounts {
    static constexpr long count = 16;
    long balance[count];
    long transfers;
};

[[gnu::noinline]] void transfer(Accounts& accounts, long from, long to, long amount)
{
    __transaction_atomic
    {
        accounts.balance[from] -= amount;
        accounts.balance[to] += amount;
        accounts.transfers += 1;
    }
}

[[gnu::noinline]] long sum_of(const Accounts& accounts)
{
    long sum = 0;
    __transaction_atomic
    {
        for (const long balance : accounts.balance) {
            sum += balance;
        }
    }
    return sum;
}

TEST_P(Threads, MoneyIsNeitherMadeNorLost)
{
    auto& accounts = root<Accounts>("state");
    std::atomic<int> wrong{0};
    constexpr int rounds = 500;
    run_threads([&](int thread) {
        unsigned random = static_cast<unsigned>(thread) * 7919 + 1;
        for (int i = 0; i < rounds; ++i) {
            random = random * 1664525 + 1013904223;
            transfer(accounts, random >> 8 & 15, random >> 16 & 15, random >> 24);
            wrong += sum_of(accounts) != 0 ? 1 : 0;
        }
    });
    EXPECT_EQ(wrong.load(), 0);
    EXPECT_EQ(accounts.transfers, thread_count * rounds);
    restart();
    auto& found = root<Accounts>("state");
    EXPECT_EQ(found.transfers, thread_count * rounds);
    EXPECT_EQ(sum_of(found), 0);
}

/// Ordinary memory in transactions of a pool: no record of the log has it.
TEST_P(Threads, OrdinaryMemoryIsIsolatedToo)
{
    static Accounts ordinary;
    ordinary = {};
    std::atomic<int> wrong{0};
    constexpr int rounds = 2000;
    run_threads([&](int thread) {
        for (int i = 0; i < rounds; ++i) {
            transfer(ordinary, (thread + i) % 16, thread, i);
            wrong += sum_of(ordinary) != 0 ? 1 : 0;
        }
    });
    EXPECT_EQ(wrong.load(), 0);
    EXPECT_EQ(ordinary.transfers, thread_count * rounds);
}

struct Node {
    Node* next;
    long value;
    long other;
};
Node* volatile keeps_the_compiler_from_knowing = nullptr;

struct List {
    Node* head;
    long taken;
};

[[gnu::noinline]] void push(List& list, Node* node)
{
    __transaction_atomic
    {
        node->next = list.head;
        list.head = node;
    }
}
[[gnu::noinline]] Node* pop(List& list)
{
    Node* node = nullptr;
    __transaction_atomic
    {
        node = list.head;
        if (node != nullptr) {
            list.head = node->next;
        }
    }
    return node;
}
std::atomic<long> seen_unequal{0};
/// Also in an attempt that is rolled back.
[[gnu::transaction_pure, gnu::noinline]] void compare(long one, long other)
{
    if (one != other) {
        seen_unequal.fetch_add(1);
    }
}
/// In each node both numbers are the same.
[[gnu::noinline]] void visit(List& list)
{
    __transaction_atomic
    {
        for (Node* node = list.head; node != nullptr; node = node->next) {
            const long value = node->value;
            const long other = node->other;
            compare(value, other);
            node->value = value + 1;
            node->other = other + 1;
        }
    }
}

/// Half of the threads take nodes out of the list, change them by plain stores, free some, and put them back: the others must not see
/// that, nor store into what was taken.
TEST_P(Threads, WhatWasTakenOutOfAListIsThatThreadsOwn)
{
    auto& list = root<List>("state");
    for (int i = 0; i < 8; ++i) {
        auto* const node = static_cast<Node*>(std::calloc(1, sizeof(Node)));
        push(list, node);
    }
    std::atomic<long> wrong{0};
    std::atomic<int> takers{thread_count / 2};
    run_threads([&](int thread) {
        if (thread % 2 != 0) {
            while (takers.load() != 0) {
                visit(list);
            }
            return;
        }
        for (int i = 0; i < 1000; ++i) {
            Node* node = pop(list);
            if (node == nullptr) {
                continue;
            }
            for (int turn = 0; turn < 200; ++turn) {
                const long value = node->value;
                wrong += node->other != value ? 1 : 0;
                node->value = value + 1000;
                keeps_the_compiler_from_knowing = node;
                node->other = value + 1000;
                wrong += node->value != value + 1000 ? 1 : 0;
            }
            if (i % 4 == 0) {
                auto* const copy = static_cast<Node*>(std::malloc(sizeof(Node)));
                *copy = *node;
                std::free(node);
                node = copy;
            }
            push(list, node);
        }
        takers.fetch_sub(1);
    });
    EXPECT_EQ(wrong.load(), 0);
    EXPECT_EQ(seen_unequal.exchange(0), 0);
    int left = 0;
    for (Node* node = pop(list); node != nullptr; node = pop(list)) {
        EXPECT_EQ(node->value, node->other);
        std::free(node);
        ++left;
    }
    EXPECT_EQ(left, 8);
}

std::atomic<bool> visitor_has_begun{false};
std::atomic<bool> node_was_changed{false};
[[gnu::transaction_pure, gnu::noinline]] void let_the_other_change()
{
    visitor_has_begun = true;
    for (int i = 0; i < 100 && !node_was_changed; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}
[[gnu::noinline]] void look_twice(List& list)
{
    __transaction_atomic
    {
        // Some executors let the other take the node meanwhile, and run this again.
        if (const Node* const node = list.head; node != nullptr) {
            const long first = node->value;
            let_the_other_change();
            compare(first, node->value);
        }
    }
}

/// The commit that takes the node waits for the transaction that has found it before, or lets it meet a conflict.
TEST_P(Threads, ATransactionThatBeganBeforeSeesNoPlainStores)
{
    auto& list = root<List>("state");
    push(list, static_cast<Node*>(std::calloc(1, sizeof(Node))));
    visitor_has_begun = node_was_changed = false;
    std::thread visitor([&] { look_twice(list); });
    while (!visitor_has_begun) {
        std::this_thread::yield();
    }
    Node* const node = pop(list);
    node->value = 1000;
    node_was_changed = true;
    visitor.join();
    EXPECT_EQ(seen_unequal.exchange(0), 0);
    std::free(node);
}

[[gnu::noinline]] void unsafe_call() { asm volatile(""); }

TEST_P(Threads, AnIrrevocableTransactionMeetsNoOther)
{
    auto& accounts = root<Accounts>("state");
    std::atomic<int> wrong{0};
    run_threads([&](int thread) {
        for (int i = 0; i < 100; ++i) {
            if (thread == 0) {
                __transaction_relaxed
                {
                    unsafe_call();
                    accounts.balance[1] += 1;
                    unsafe_call();
                    accounts.balance[2] -= 1;
                }
            } else {
                transfer(accounts, 1, 2, thread);
                wrong += sum_of(accounts) != 0 ? 1 : 0;
            }
        }
    });
    EXPECT_EQ(wrong.load(), 0);
    const long one = accounts.balance[1];
    EXPECT_EQ(one, 100 - 100 * (1 + 2 + 3));
    restart();
    EXPECT_EQ(root<Accounts>("state").balance[1], one);
    EXPECT_EQ(sum_of(root<Accounts>("state")), 0);
}

}  // namespace

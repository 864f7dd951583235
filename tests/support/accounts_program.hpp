#pragma once
// A program in transactions, for tests of the engine spht: threads that move money, and put nodes on a list and take them off again.

#include <stillpoint/spht.hpp>

#include <cstdint>
#include <thread>
#include <vector>

namespace stillpoint::test {

struct Accounts {
    static constexpr unsigned threads_count = 3;
    static constexpr std::uint64_t accounts_count = 24;
    struct Node {
        std::uint64_t value;
        Node* next;
    };

    std::uint64_t accounts[accounts_count];  ///< their sum stays 0
    std::uint64_t done[threads_count];  ///< transactions of each thread
    Node* nodes;
    std::uint64_t node_count;
};

/// 0 if no transaction is there in part, and `transactions` of each thread are.
inline int check_whole(const Accounts& state, std::uint64_t transactions)
{
    std::uint64_t sum = 0;
    for (const std::uint64_t account : state.accounts) {
        sum += account;
    }
    std::uint64_t nodes = 0;
    for (const Accounts::Node* node = state.nodes; node != nullptr; node = node->next) {
        ++nodes;
    }
    for (const std::uint64_t done : state.done) {
        if (done != transactions) {
            return 1;
        }
    }
    return sum != 0 ? 2 : nodes != state.node_count ? 3 : 0;
}

/// Transaction `number` of that thread.
inline void transfer(Accounts& state, unsigned thread, std::uint64_t number, std::uint64_t& from, std::uint64_t& to)
{
    spht::atomically([&](spht::transaction& tx) {
        tx.write(from, tx.read(from) - 1);
        tx.write(to, tx.read(to) + 1);
        tx.write(state.done[thread], tx.read(state.done[thread]) + 1);
        if (number % 16 == 0) {
            tx.write(state.nodes, tx.create(Accounts::Node{number, tx.read(state.nodes)}));
            tx.write(state.node_count, tx.read(state.node_count) + 1);
        } else if (number % 16 == 9 && tx.read(state.nodes) != nullptr) {
            Accounts::Node* const first = tx.read(state.nodes);
            tx.write(state.nodes, tx.read(first->next));
            tx.write(state.node_count, tx.read(state.node_count) - 1);
            tx.free(first);
        }
    });
}

/// Each thread makes so many transfers, and calls more(thread, number, random, from, to) before each.
template <class More>
void run_threads(Accounts& state, std::uint64_t transactions, const More& more)
{
    std::vector<std::thread> threads;
    for (unsigned thread = 0; thread < Accounts::threads_count; ++thread) {
        threads.emplace_back([&state, &more, thread, transactions] {
            std::uint64_t random = 88'172'645'463'325'252 + thread;
            for (std::uint64_t number = 0; number < transactions; ++number) {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                std::uint64_t& from = state.accounts[random % Accounts::accounts_count];
                std::uint64_t& to = state.accounts[(random >> 20) % Accounts::accounts_count];
                more(thread, number, random, from, to);
                transfer(state, thread, number, from, to);
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

}  // namespace stillpoint::test

// Each protocol keeps what has returned, a pool goes from one to another, and where one cannot run that is said.

#include <stillpoint/spht.hpp>

#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

#include "engines/spht/protocols/protocol.hpp"
#include "engines/spht/spht_layout.hpp"
#include "logs/durable_marker.hpp"
#include "support/crashing_program.hpp"
#include "support/temporary_directory.hpp"

namespace stillpoint {
namespace {

constexpr unsigned threads_count = 3;
constexpr std::uint64_t accounts_count = 24;

struct Node {
    std::uint64_t value;
    Node* next;
};

struct State {
    std::uint64_t accounts[accounts_count];  // Their sum stays 0.
    std::uint64_t done[threads_count];
    Node* nodes;
    std::uint64_t node_count;
};

State* state() { return static_cast<State*>(sp_root("state", sizeof(State))); }

/// 0 if no transaction is there in part, and `transactions` of each thread are.
int check_whole(std::uint64_t transactions)
{
    const State* const root = state();
    std::uint64_t sum = 0;
    for (const std::uint64_t account : root->accounts) {
        sum += account;
    }
    std::uint64_t nodes = 0;
    for (const Node* node = root->nodes; node != nullptr; node = node->next) {
        ++nodes;
    }
    for (const std::uint64_t done : root->done) {
        if (done != transactions) {
            return 1;
        }
    }
    return sum != 0 ? 2 : nodes != root->node_count ? 3 : 0;
}

void work(State* root, unsigned thread, std::uint64_t transactions)
{
    std::uint64_t random = 88'172'645'463'325'252 + thread;
    std::uint64_t own_memory = 0;
    for (std::uint64_t i = 0; i < transactions; ++i) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        std::uint64_t& from = root->accounts[random % accounts_count];
        std::uint64_t& to = root->accounts[(random >> 20) % accounts_count];
        spht::atomically([&](spht::transaction& tx) {
            tx.write(from, tx.read(from) - 1);
            tx.write(to, tx.read(to) + 1);
            tx.write(root->done[thread], tx.read(root->done[thread]) + 1);
            if (i % 16 == 0) {
                auto* const node = static_cast<Node*>(tx.allocate(sizeof(Node)));
                tx.write(node->value, i);
                tx.write(node->next, tx.read(root->nodes));
                tx.write(root->nodes, node);
                tx.write(root->node_count, tx.read(root->node_count) + 1);
            } else if (i % 16 == 9 && tx.read(root->nodes) != nullptr) {
                Node* const first = tx.read(root->nodes);
                tx.write(root->nodes, tx.read(first->next));
                tx.write(root->node_count, tx.read(root->node_count) - 1);
                tx.free(first);
            }
        });
        if (i % 32 == thread) {
            sp_free(sp_malloc(100));  // The library's own records.
            static_cast<void>(spht::atomically([&](spht::transaction& tx) { return tx.read(from) + tx.read(to); }, SP_SPHT_READ_ONLY));
            spht::atomically([&](spht::transaction& tx) { tx.write(own_memory, tx.read(to)); });  // Volatile memory alone.
        }
        if (i % 64 == thread) {
            spht::atomically([&](spht::transaction& tx) { tx.write(from, tx.read(from)); }, SP_SPHT_IRREVOCABLE);
        }
    }
}

void run_threads(std::uint64_t transactions)
{
    State* const root = state();
    std::vector<std::thread> threads;
    for (unsigned thread = 0; thread < threads_count; ++thread) {
        threads.emplace_back([=] { work(root, thread, transactions); });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

class Protocols : public testing::TestWithParam<const char*> {
protected:
    int run(const std::string& protocol, const std::function<int()>& body, const std::string& more = " medium=memory")
    {
        return test::run_with_pool(pool_, "engine=spht pool_size_mb=16 durability=process interval_ms=20 protocol=" + protocol + more,
                                   body);
    }

    test::TemporaryDirectory directory_;
    std::string pool_ = directory_.file("test.pool");
};

INSTANTIATE_TEST_SUITE_P(OfThePaper, Protocols, testing::Values("spht", "nv-htm", "dudetm", "crafty", "cc-htm", "pstm"),
                         [](const auto& protocol) {
                             std::string name = protocol.param;
                             std::erase(name, '-');
                             return name;
                         });

TEST_P(Protocols, KeepWhatHasReturned)
{
    constexpr std::uint64_t transactions = 300;
    for (std::uint64_t runs = 1; runs <= 3; ++runs) {
        EXPECT_EQ(run(GetParam(),
                      [] {
                          run_threads(transactions);
                          test::crash();
                          return 0;
                      }),
                  test::killed);
        EXPECT_EQ(run(GetParam(), [=] { return check_whole(runs * transactions); }), 0);
    }
}

TEST_P(Protocols, RecoverThePoolOfAnother)
{
    constexpr std::uint64_t transactions = 100;
    std::uint64_t runs = 0;
    for (const char* const other : {"spht", "nv-htm", "dudetm", "crafty", "cc-htm", "pstm"}) {
        for (const char* const protocol : {other, GetParam()}) {
            EXPECT_EQ(run(protocol,
                          [=] {
                              if (const int wrong = check_whole(runs * transactions); wrong != 0) {
                                  return wrong;
                              }
                              run_threads(transactions);
                              test::crash();
                              return 0;
                          }),
                      test::killed);
            ++runs;
        }
    }
    EXPECT_EQ(run("spht", [=] { return check_whole(runs * transactions); }, " medium=file"), 0);
}

TEST_P(Protocols, SayWhereTheyCannotRun)
{
    const bool is_spht = std::string(GetParam()) == "spht";
    const auto nothing = [] { return 0; };
    EXPECT_EQ(run(GetParam(), nothing, " medium=file"), is_spht ? 0 : test::could_not_open);
    EXPECT_EQ(run(GetParam(), nothing, " medium=memory linking=forward"), is_spht ? 0 : test::could_not_open);
}

TEST_P(Protocols, AreDamagedIfTheirNameIs)
{
    EXPECT_EQ(run(GetParam(), [] { return check_whole(0); }), 0);
    std::fstream file(pool_, std::ios::in | std::ios::out | std::ios::binary);
    const std::uint64_t magic = logs::marker_magic;
    std::string bytes(std::size_t{64} * page_bytes, '\0');
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    const std::size_t at = bytes.find(std::string(reinterpret_cast<const char*>(&magic), sizeof magic));
    ASSERT_NE(at, std::string::npos);
    const std::size_t name = at + sizeof magic;
    file.seekp(static_cast<std::streamoff>(name));
    file.put(static_cast<char>(bytes[name] ^ 1));
    file.close();
    EXPECT_EQ(run(GetParam(), [] { return 0; }), test::could_not_open);
}

TEST(ProtocolsOfPools, HaveAWordEach)
{
    for (const char* const name : {"spht", "nv-htm", "dudetm", "crafty", "cc-htm", "pstm"}) {
        const spht::ProtocolRow& row = spht::protocol_called(name);
        EXPECT_EQ(row.name, name);
        EXPECT_EQ(spht::protocol_of_pool(row.pool_word), &row);
    }
    EXPECT_EQ(spht::protocol_called("nv-htm").pool_word, 0x4d54'482d'564eU);  // "NV-HTM"
    EXPECT_EQ(spht::protocol_of_pool(1), nullptr);
}

}  // namespace
}  // namespace stillpoint

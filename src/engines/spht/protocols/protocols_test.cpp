// Each protocol keeps what has returned, a pool goes from one to another, and where one cannot run that is said.

#include <stillpoint/spht.hpp>

#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <string>

#include "engines/spht/protocols/protocol.hpp"
#include "engines/spht/spht_layout.hpp"
#include "logs/durable_marker.hpp"
#include "support/accounts_program.hpp"
#include "support/crashing_program.hpp"
#include "support/temporary_directory.hpp"

namespace stillpoint {
namespace {

test::Accounts* state() { return static_cast<test::Accounts*>(sp_root("state", sizeof(test::Accounts))); }

int check_whole(std::uint64_t transactions) { return test::check_whole(*state(), transactions); }

void run_threads(std::uint64_t transactions)
{
    const auto more = [](unsigned thread, std::uint64_t number, std::uint64_t /*random*/, std::uint64_t& from, std::uint64_t& to) {
        std::uint64_t own_memory = 0;
        if (number % 32 == thread) {
            sp_free(sp_malloc(100));  // The library's own records.
            static_cast<void>(spht::atomically([&](spht::transaction& tx) { return tx.read(from) + tx.read(to); }, SP_SPHT_READ_ONLY));
            spht::atomically([&](spht::transaction& tx) { tx.write(own_memory, tx.read(to)); });  // Volatile memory alone.
        }
        if (number % 64 == thread) {
            spht::atomically([&](spht::transaction& tx) { tx.write(from, tx.read(from)); }, SP_SPHT_IRREVOCABLE);
        }
    };
    test::run_threads(*state(), transactions, more);
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

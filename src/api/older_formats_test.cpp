// A pool of an older layout of its engine opens, keeps what it has, takes new work, and grows in its own layout.

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "api/registry.hpp"
#include "media/open.hpp"
#include "pool/pool.hpp"
#include "support/crashing_program.hpp"
#include "support/pool_of_format.hpp"
#include "support/stores_of_engine.hpp"
#include "support/temporary_directory.hpp"

namespace stillpoint {
namespace {

using test::begin_section;
using test::end_section;
using test::store;

struct OlderPool {
    std::string engine;
    std::size_t place;  ///< among the engine's older formats
};

/// Not nvthreads, which needs a program that was compiled by `stillpoint cc`: its parts are those of spht.
std::vector<OlderPool> older_pools()
{
    std::vector<OlderPool> found;
    for (const char* const engine : {"pmthreads", "pronto", "spht"}) {
        for (std::size_t place = 0; place < find_engine(engine)->more_formats.size(); ++place) {
            found.push_back({engine, place});
        }
    }
    return found;
}

class OlderFormat : public ::testing::TestWithParam<OlderPool> {
protected:
    [[nodiscard]] static const EngineDriver& driver() { return *find_engine(GetParam().engine); }
    [[nodiscard]] static const EngineFormat& format() { return driver().more_formats[GetParam().place]; }
    test::TemporaryDirectory directory_;
    const std::string pool_ = directory_.file("older.pool");
};

/// Allocates so much that the pool grows, and leaves `mark` in its root.
int use(std::uint64_t mark, bool is_transaction)
{
    auto* const word = static_cast<std::uint64_t*>(sp_root("word", 8));
    if (*word != mark - 1) {
        return 2;
    }
    for (unsigned epoch = 0; epoch < 3; ++epoch) {
        sp_fase_begin();
        auto* const large = static_cast<std::uint64_t*>(sp_malloc(3 * mib));
        sp_fase_end();
        if (large == nullptr) {
            return 3;
        }
        begin_section(is_transaction);
        store(*large, 1);
        store(*word, mark);
        end_section(is_transaction);
        if (sp_checkpoint() != SP_OK) {
            return 4;
        }
    }
    return 0;
}

TEST_P(OlderFormat, OpensAndIsWrittenAndGrows)
{
    ASSERT_LT(format().layout_version, driver().format.layout_version);
    ASSERT_NO_FATAL_FAILURE(test::make_pool_of_format(pool_, format(), Durability::process));
    const std::string options = "engine=" + GetParam().engine + " pool_max_mb=64 interval_ms=3600000 durability=process";
    for (std::uint64_t run = 1; run <= 3; ++run) {
        ASSERT_EQ(test::run_with_pool(pool_, options, [run] { return use(run, test::has_transactions(GetParam().engine)); }), 0)
            << "run " << run;
    }
    MediumOptions medium;
    medium.path = pool_;
    auto opened = open_medium_read_only(medium, false);
    ASSERT_TRUE(opened);
    auto read = Pool::open(std::move(*opened), format(), true);
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_GT(read->segments().size(), 1U);
    EXPECT_TRUE(driver().check(*read, nullptr, nullptr, nullptr, nullptr));
}
INSTANTIATE_TEST_SUITE_P(Engines, OlderFormat, ::testing::ValuesIn(older_pools()), [](const auto& pool) {
    return pool.param.engine + std::to_string(find_engine(pool.param.engine)->more_formats[pool.param.place].layout_version);
});

}  // namespace
}  // namespace stillpoint

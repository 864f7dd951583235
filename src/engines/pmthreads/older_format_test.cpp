// A pool of the format without a delta log opens, keeps what it has, takes new epochs, and grows.

#include <cstring>
#include <gtest/gtest.h>
#include <string>

#include "engines/pmthreads/pmthreads_engine.hpp"
#include "media/open.hpp"
#include "pool/pool.hpp"
#include "support/crashing_program.hpp"
#include "support/temporary_directory.hpp"

namespace stillpoint::pmthreads {
namespace {

constexpr std::string_view options = "pool_max_mb=64 interval_ms=3600000 durability=process tracker=hooks";

void make_older_pool(const std::string& path)
{
    const EngineFormat& older = driver().more_formats.front();
    ASSERT_LT(older.layout_version, driver().format.layout_version);
    const Pool::CreateOptions create{older, 16 * mib, 64 * mib};
    MediumOptions medium;
    medium.path = path;
    medium.durability = Durability::process;
    auto created = create_medium(medium, *Pool::file_bytes_for(create));
    ASSERT_TRUE(created) << created.error().text();
    ASSERT_TRUE(Pool::create(std::move(*created), create));
}

TEST(PmthreadsOlderFormat, OpensAndIsWrittenAndGrows)
{
    const test::TemporaryDirectory directory;
    const std::string pool = directory.file("older.pool");
    make_older_pool(pool);
    for (unsigned run = 0; run < 3; ++run) {
        const int outcome = test::run_with_pool(pool, std::string(options), [run] {
            auto* const word = static_cast<std::uint64_t*>(sp_root("word", 8));
            if (*word != run) {
                return 2;
            }
            for (unsigned epoch = 0; epoch < 3; ++epoch) {
                sp_fase_begin();
                auto* const large = static_cast<std::byte*>(sp_malloc(3 * mib));
                if (large == nullptr) {
                    return 3;
                }
                std::memset(large, 1, 100);
                sp_mark_written(large, 100);
                *word = run + 1;
                sp_mark_written(word, sizeof *word);
                sp_fase_end();
                if (sp_checkpoint() != SP_OK) {
                    return 4;
                }
            }
            return 0;
        });
        ASSERT_EQ(outcome, 0) << "run " << run;
    }
    MediumOptions medium;
    medium.path = pool;
    auto opened = open_medium_read_only(medium, false);
    ASSERT_TRUE(opened);
    auto read = Pool::open(std::move(*opened), driver().more_formats.front(), true);
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_GT(read->segments().size(), 1U);
    EXPECT_TRUE(driver().check(*read, nullptr, nullptr, nullptr, nullptr));
}

}  // namespace
}  // namespace stillpoint::pmthreads

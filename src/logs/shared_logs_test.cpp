// Threads that share logs take turns, and each log's records keep rising timestamps.

#include "logs/shared_logs.hpp"

#include <atomic>
#include <gtest/gtest.h>
#include <memory>
#include <thread>
#include <vector>

#include "logs/log_bytes.hpp"
#include "support/fake_medium.hpp"

namespace stillpoint::logs {
namespace {

TEST(SharedLogs, AreNotUsedBeforeTheyArePrepared)
{
    SharedLogs shared;
    RedoLog own;
    EXPECT_FALSE(shared.are_used());
    EXPECT_EQ(&shared.log_of(3, own), &own);
    EXPECT_EQ(shared.logs_of(64), 64U);
}

TEST(SharedLogs, HaveRisingTimestampsWhateverThreadsAppend)
{
    constexpr std::uint32_t chunks = 16;
    constexpr unsigned threads = 11;
    constexpr std::uint64_t records = 300;
    testing::FakeMedium medium{std::make_shared<testing::FakeDisk>()};
    ChunkSpace space;
    ASSERT_TRUE(space.reserve(chunks, nullptr));
    space.add(0, chunks * chunk_pages);
    space.give_back_from(0);
    SharedLogs shared;
    ASSERT_TRUE(shared.prepare(space, medium, 0, 1));
    ASSERT_LE(shared.logs_of(threads), 8U);
    RedoLog unused;
    std::atomic<Timestamp> clock{0};
    std::vector<std::thread> appending;
    for (unsigned thread = 0; thread < threads; ++thread) {
        appending.emplace_back([&, thread] {
            RedoLog& log = shared.log_of(thread, unused);
            RecordBuilder builder;
            ASSERT_TRUE(builder.reserve(64));
            for (std::uint64_t i = 0; i < records; ++i) {
                builder.clear();
                builder.add_word(thread, i);
                ASSERT_EQ(log.prepare(builder.words()), RedoLog::Room::ready);
                log.append(builder, ++clock);
            }
        });
    }
    for (std::thread& thread : appending) {
        thread.join();
    }
    std::uint64_t found = 0;
    for (std::uint32_t number = 0; number < shared.logs_of(threads); ++number) {
        Timestamp newest = 0;
        shared.log_of(number, unused).visit_chunks([&](ChunkIndex chunk, std::uint32_t used) {
            for (std::uint64_t at = sizeof(ChunkHeader); at < used; ++found) {
                const auto& header = *reinterpret_cast<const RecordHeader*>(space.bytes()[chunk] + at);
                EXPECT_GT(header.timestamp >> 1, newest);
                newest = header.timestamp >> 1;
                at += record_bytes_for(header.words);
            }
        });
    }
    EXPECT_EQ(found, threads * records);
}

}  // namespace
}  // namespace stillpoint::logs

// Room on the disk follows use: chunks get it when they are taken, and give it back, those that were not used for longest first.

#include "pool/free_chunks.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <memory>
#include <set>
#include <vector>

#include "support/patched_medium.hpp"

namespace stillpoint {
namespace {

constexpr std::uint64_t chunk_bytes = 4 * page_bytes;
constexpr std::uint32_t chunks = 100;
constexpr std::uint32_t first_with_room = 8;

class FreeChunksOn : public ::testing::Test {
protected:
    explicit FreeChunksOn(std::uint64_t bytes_of_a_chunk = chunk_bytes)
        : file_(std::make_shared<testing::PatchedFile>(std::vector<std::byte>(chunks * bytes_of_a_chunk))), medium_(file_)
    {
        file_->leave_without_room({FileRange{first_with_room * bytes_of_a_chunk, chunks * bytes_of_a_chunk}, FileRange{}});
        EXPECT_TRUE(free_.reserve(chunks, bytes_of_a_chunk, &medium_));
        for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
            free_.add(chunk * bytes_of_a_chunk, false);
        }
        for (std::uint32_t chunk = chunks; chunk > 0; --chunk) {
            free_.give_back(chunk - 1);
        }
    }
    std::vector<ChunkIndex> take(std::uint32_t count)
    {
        std::vector<ChunkIndex> taken;
        for (std::uint32_t i = 0; i < count; ++i) {
            taken.push_back(free_.take());
        }
        return taken;
    }
    void give_back(const std::vector<ChunkIndex>& taken)
    {
        for (const ChunkIndex chunk : taken) {
            free_.give_back(chunk);
        }
    }
    std::vector<ChunkIndex> give_room_back(std::uint32_t least)
    {
        std::vector<ChunkIndex> released;
        free_.give_room_back(least, now_ns_, [&](ChunkIndex chunk) { released.push_back(chunk); });
        return released;
    }
    void sleep_seconds(std::uint64_t seconds) { now_ns_ += seconds * 1'000'000'000; }
    [[nodiscard]] std::uint64_t chunks_with_room() const { return chunks - file_->bytes_without_room() / chunk_bytes; }

    std::shared_ptr<testing::PatchedFile> file_;
    testing::PatchedMedium medium_;
    FreeChunks free_;
    std::uint64_t now_ns_ = 1;
};

/// 100 of them are more than a little.
class LargeChunksOn : public FreeChunksOn {
protected:
    LargeChunksOn() : FreeChunksOn(256 * kib) {}
};

TEST_F(FreeChunksOn, TakesRoomWithTheChunk)
{
    const auto taken = take(30);
    EXPECT_EQ(std::set<ChunkIndex>(taken.begin(), taken.end()).size(), 30U);
    EXPECT_EQ(chunks_with_room(), 30U);
    EXPECT_EQ(free_.free_chunks(), chunks - 30);
}

TEST_F(FreeChunksOn, UsesChunksAgainThatHaveRoom)
{
    for (unsigned round = 0; round < 10; ++round) {
        give_back(take(20));
    }
    EXPECT_EQ(chunks_with_room(), 20U);
}

TEST_F(FreeChunksOn, KeepsRoomForAsManyAsWereInUse)
{
    give_back(take(50));
    EXPECT_TRUE(give_room_back(first_with_room).empty());
    give_back(take(20));
    EXPECT_EQ(give_room_back(first_with_room).size(), 13U) << "a quarter of what had been needed before";
    EXPECT_EQ(chunks_with_room(), 37U);
    give_back(take(36));
    EXPECT_EQ(give_room_back(first_with_room).size(), 1U);
    for (int quiet = 0; quiet < 8; ++quiet) {
        static_cast<void>(give_room_back(first_with_room));
    }
    EXPECT_EQ(chunks_with_room(), first_with_room) << "nothing was used since";
    EXPECT_EQ(free_.free_chunks(), chunks);
}

TEST_F(FreeChunksOn, KeepsLittleOnceItsUseIsForgotten)
{
    const auto held = take(5);
    give_back(take(50));
    free_.forget_use();
    EXPECT_EQ(give_room_back(first_with_room).size(), 55 - first_with_room);
    EXPECT_EQ(chunks_with_room(), first_with_room);
}

TEST_F(LargeChunksOn, GiveMuchRoomBackEachFewSecondsAndLittleAtOnce)
{
    give_back(take(90));
    EXPECT_TRUE(give_room_back(first_with_room).empty()) << "all were in use since the last time";
    sleep_seconds(4);
    EXPECT_TRUE(give_room_back(first_with_room).empty());
    sleep_seconds(1);
    EXPECT_EQ(give_room_back(first_with_room).size(), 23U);
    for (int some_seconds = 0; some_seconds < 6; ++some_seconds) {
        sleep_seconds(5);
        static_cast<void>(give_room_back(first_with_room));
    }
    const auto little = give_room_back(first_with_room);
    EXPECT_FALSE(little.empty()) << "no second has gone by";
}

TEST_F(LargeChunksOn, GiveRoomBackAtOnceWhenTheirUseIsForgotten)
{
    give_back(take(90));
    static_cast<void>(give_room_back(first_with_room));
    free_.forget_use();
    EXPECT_EQ(give_room_back(first_with_room).size(), 90 - first_with_room);
}

TEST_F(FreeChunksOn, DoesNotTakeRoomFromChunksInUse)
{
    const auto held = take(40);
    give_back(take(40));
    for (int quiet = 0; quiet < 4; ++quiet) {
        for (const ChunkIndex chunk : give_room_back(0)) {
            EXPECT_EQ(std::count(held.begin(), held.end(), chunk), 0);
        }
    }
    EXPECT_EQ(chunks_with_room(), 40U);
    EXPECT_EQ(take(60).size(), 60U);
    EXPECT_EQ(chunks_with_room(), chunks);
    EXPECT_EQ(free_.take(), no_chunk);
    EXPECT_FALSE(free_.disk_is_full());
}

TEST_F(FreeChunksOn, SaysThatTheDiskIsFullUntilItIsNotAnyMore)
{
    file_->disk_is_full = true;
    const auto taken = take(first_with_room);
    EXPECT_EQ(std::count(taken.begin(), taken.end(), no_chunk), 0);
    EXPECT_EQ(free_.take(), no_chunk);
    EXPECT_TRUE(free_.disk_is_full());
    EXPECT_EQ(free_.free_chunks(), chunks - first_with_room);
    file_->disk_is_full = false;
    EXPECT_NE(free_.take(), no_chunk);
    EXPECT_FALSE(free_.disk_is_full());
}

}  // namespace
}  // namespace stillpoint

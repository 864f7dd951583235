// docs/internals/format/redo-log.md shows a chunk byte by byte; these are its bytes, made by the code.

#include <cstdio>
#include <cstring>
#include <gtest/gtest.h>
#include <string>

#include "logs/durable_marker.hpp"
#include "logs/record_builder.hpp"
#include "logs/record_checks.hpp"

namespace stillpoint::logs {
namespace {

constexpr std::uint64_t chunk_use = 3;
constexpr Timestamp timestamp = 1000;

std::string digits_of(const void* memory, std::size_t size)
{
    std::string digits;
    const auto* bytes = static_cast<const unsigned char*>(memory);
    for (std::size_t i = 0; i < size; ++i) {
        char two[3];
        std::snprintf(two, sizeof two, "%02x", bytes[i]);
        digits += two;
    }
    return digits;
}

TEST(RedoLogFormat, HasTheBytesOfTheChunkHeaderThatTheFormatPageShows)
{
    ChunkHeader header{};
    std::memcpy(header.magic, chunk_magic, sizeof chunk_magic);
    header.use = chunk_use;
    header.log = 1;
    header.run = 5;
    header.checksum = chunk_checksum(header);
    EXPECT_EQ(digits_of(&header, sizeof header), "9353545245444f43047c534099e7d2fc03000000000000000100000000000000"
                                                 "0000000000000000050000000000000000000000000000000000000000000000");
}

TEST(RedoLogFormat, HasTheBytesOfTheRecordThatTheFormatPageShows)
{
    RecordBuilder builder;
    ASSERT_TRUE(builder.reserve(64));
    builder.add_word(8192, 90);
    builder.add_word(8193, 110);
    builder.add_bytes(9000, 0x01, 7);
    RecordHeader& header = builder.header();
    header = {timestamp << 1 | 1, static_cast<std::uint32_t>(builder.words()), 0, 0, 0};
    header.checksum = record_checksum(header, builder.payload(), chunk_use, sizeof(ChunkHeader));
    EXPECT_EQ(record_bytes_for(builder.words()), 128U);
    EXPECT_EQ(digits_of(&header, sizeof header), "d1070000000000000500000000000000c805f11c6a9692eb0000000000000000");
    EXPECT_EQ(digits_of(builder.payload(), builder.words() * 8), "09000002000000005a000000000000006e00000000000000"
                                                                 "06803202000000000700000000000000");
}

TEST(RedoLogFormat, HasTheBytesOfTheMarkerThatTheFormatPageShows)
{
    const std::uint64_t word = encode_marker(timestamp);
    EXPECT_EQ(digits_of(&word, sizeof word), "097d000000000000");
}

}  // namespace
}  // namespace stillpoint::logs

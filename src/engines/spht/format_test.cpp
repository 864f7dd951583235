// docs/internals/format/spht.md shows a group record and a replay point byte by byte; these are their bytes, made by the code.

#include <cstddef>
#include <cstdio>
#include <gtest/gtest.h>
#include <string>

#include "arch/checksum.hpp"
#include "engines/spht/spht_layout.hpp"
#include "logs/group_commit.hpp"

namespace stillpoint::spht {
namespace {

template <class T>
std::string digits_of(const T& value)
{
    std::string digits;
    const auto* bytes = reinterpret_cast<const unsigned char*>(&value);
    for (std::size_t i = 0; i < sizeof value; ++i) {
        char two[3];
        std::snprintf(two, sizeof two, "%02x", bytes[i]);
        digits += two;
    }
    return digits;
}

TEST(SphtFormat, HasTheBytesOfTheGroupRecordThatTheFormatPageShows)
{
    logs::GroupRecord record{logs::group_magic, 0, 4, 1000, 12};
    record.checksum = logs::group_checksum(record, logs::group_magic);
    EXPECT_EQ(digits_of(record), "5354524752555031af215a17f136b45f0400000000000000e8030000000000000c00000000000000");
}

TEST(SphtFormat, HasTheBytesOfTheReplayPointThatTheFormatPageShows)
{
    ReplayPoint point{replay_point_magic, 0, 7, 900, 10};
    point.checksum = checksum64(&point.epoch, sizeof point - offsetof(ReplayPoint, epoch), replay_point_magic);
    EXPECT_EQ(digits_of(point), "5350485452505431582afcf1b710d040070000000000000084030000000000000a00000000000000");
}

TEST(SphtFormat, PlacesTheLogPartWhereTheFormatPageShows)
{
    const Segment segment{0, 16384, 11, LogPart::segment_file_pages(16384)};
    EXPECT_EQ(engine_area_pages, 9U);
    EXPECT_EQ(LogPart::first_page(segment), 33039U);
    EXPECT_EQ(LogPart::pages_for(16384), 8192U);
    EXPECT_EQ(LogPart::pages_for(1024), 1024U);
}

}  // namespace
}  // namespace stillpoint::spht

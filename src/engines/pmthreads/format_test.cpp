// docs/internals/format/pmthreads.md shows an example byte by byte; these are its bytes, made by the code.

#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "arch/checksum.hpp"
#include "pool/commit_layout.hpp"
#include "versions/version_table.hpp"

namespace stillpoint::pmthreads {
namespace {

constexpr std::uint64_t image_page = 16;

Uuid example_uuid()
{
    Uuid uuid{};
    for (std::size_t i = 0; i < uuid.size(); ++i) {
        uuid[i] = static_cast<std::uint8_t>(i * 0x11);
    }
    return uuid;
}

versions::VersionSlot slot_of_page_full_of(int byte, std::uint64_t epoch, std::uint32_t location)
{
    versions::VersionTable table;
    EXPECT_TRUE(table.reserve(16384, example_uuid()));
    const std::vector<std::byte> page(page_bytes, static_cast<std::byte>(byte));
    return {epoch, location, versions::page_checksum(versions::content_hash(page.data(), table.hash_seed()), image_page, epoch)};
}

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

/// The table page of image pages 0 to 254, where only image page 16 has a copy.
versions::TablePage table_page_with(const versions::VersionSlot& slot)
{
    versions::VersionTable table;
    EXPECT_TRUE(table.reserve(16384, example_uuid()));
    table.extend({0, 16384, 6, versions::segment_file_pages(16384)});
    table.switch_copy(image_page, slot);
    versions::TablePage page;
    table.compose(0, slot.epoch, page);
    return page;
}

TEST(PmthreadsFormat, HasTheBytesOfTheTablePagesThatTheFormatPageShows)
{
    const Segment segment{0, 16384, 6, versions::segment_file_pages(16384)};
    EXPECT_EQ(versions::table_file_page(segment, 0, 0), 6U);
    EXPECT_EQ(versions::table_file_page(segment, 0, 1), 136U);
    EXPECT_EQ(versions::first_data_page(segment), 266U);
    const versions::TablePage older = table_page_with(slot_of_page_full_of(0xab, 5, 266));
    const versions::TablePage newer = table_page_with(slot_of_page_full_of(0xcd, 7, 267));
    EXPECT_EQ(digits_of(older).substr(0, 32), "b1b985d8dd9142ec0500000000000000");
    EXPECT_EQ(digits_of(newer).substr(0, 32), "7bf6e7731f70b3290700000000000000");
    EXPECT_EQ(digits_of(older.slots[image_page]), "05000000000000000a010000c4e677c1");
    EXPECT_EQ(digits_of(newer.slots[image_page]), "07000000000000000b010000df4eb3f0");
    EXPECT_EQ(digits_of(newer.slots[image_page + 1]), std::string(32, '0'));
}

TEST(PmthreadsFormat, HasTheBytesOfTheRecordThatTheFormatPageShows)
{
    const versions::VersionSlot slot = slot_of_page_full_of(0xcd, 7, 267);
    CommitRecord record{};
    record.magic = commit_magic;
    record.pool_uuid = example_uuid();
    record.epoch = 7;
    record.generation = 6;
    record.table_digest = mix64(mix64(image_page, slot.epoch), (std::uint64_t{slot.location} << 32) | slot.checksum);
    record.image_pages = 16384;
    record.pages_in_epoch = 1;
    record.captured_unix_ns = 0x18d75b8423f30000;
    record.flags = commit_clean;
    record.parity = 1;
    record.checksum = checksum64(&record, offsetof(CommitRecord, checksum), commit_magic);
    EXPECT_EQ(digits_of(record), "535450434d4d54310011223344556677"
                                 "8899aabbccddeeff0700000000000000"
                                 "0600000000000000286615b8d5ba7374"
                                 "00400000000000000100000000000000"
                                 "0000f323845bd7180100000001000000"
                                 "90bf76009b043011");
}

}  // namespace
}  // namespace stillpoint::pmthreads

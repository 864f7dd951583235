// docs/format/pmthreads.md shows an example byte by byte; these are its bytes, made by the code.

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

TEST(PmthreadsFormat, HasTheBytesOfTheEntryThatTheFormatPageShows)
{
    EXPECT_EQ(digits_of(slot_of_page_full_of(0xab, 5, 150)), "050000000000000096000000c4e677c1");
    EXPECT_EQ(digits_of(slot_of_page_full_of(0xcd, 7, 134)), "070000000000000086000000df4eb3f0");
}

TEST(PmthreadsFormat, HasTheBytesOfTheRecordThatTheFormatPageShows)
{
    const versions::VersionSlot slot = slot_of_page_full_of(0xcd, 7, 134);
    CommitRecord record{};
    record.magic = commit_magic;
    record.pool_uuid = example_uuid();
    record.epoch = 7;
    record.generation = 6;
    record.table_digest = mix64(mix64(image_page, slot.epoch),
                                (std::uint64_t{slot.location} << 32) | slot.checksum);
    record.image_pages = 16384;
    record.pages_in_epoch = 1;
    record.captured_unix_ns = 0x18d75b8423f30000;
    record.flags = commit_clean;
    record.parity = 1;
    record.checksum = checksum64(&record, offsetof(CommitRecord, checksum), commit_magic);
    EXPECT_EQ(digits_of(record),
              "535450434d4d54310011223344556677"
              "8899aabbccddeeff0700000000000000"
              "0600000000000000d20b8abd1bc7e645"
              "00400000000000000100000000000000"
              "0000f323845bd7180100000001000000"
              "cea205f198948a04");
}

}  // namespace
}  // namespace stillpoint::pmthreads

// Superblocks against damage and malice:
//   - No single flipped bit is ever accepted: the other copy takes over, or there is an error.
//   - A copy torn at any sector leaves the other in force.
//   - Fields that contradict each other or the file are refused, under a checksum that holds.

#include "pool/superblock.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>

#include "support/pool_fixture.hpp"

namespace stillpoint::testing {
namespace {

constexpr std::size_t bits_of_copy = page_bytes * 8;

void flip(Bytes& content, std::size_t copy, std::size_t bit) { content[copy * page_bytes + bit / 8] ^= std::byte{1} << (bit % 8); }

TEST(Superblock, NeverAcceptsAFlippedBitOfOneCopyAndUsesTheOther)
{
    auto disk = disk_with_pool();
    const PoolFacts truth = open_pool(disk, true)->facts();
    for (std::size_t copy = 0; copy < 2; ++copy) {
        for (std::size_t bit = 0; bit < bits_of_copy; ++bit) {
            flip(disk->cached, copy, bit);
            const auto opened = open_pool(disk, true);
            ASSERT_TRUE(opened) << "copy " << copy << " bit " << bit << ": " << opened.error().message;
            ASSERT_TRUE(opened->facts().superblock_damaged) << "copy " << copy << " bit " << bit;
            ASSERT_EQ(opened->facts().uuid, truth.uuid);
            ASSERT_EQ(opened->facts().generation, truth.generation);
            flip(disk->cached, copy, bit);
        }
    }
}

TEST(Superblock, RepairsACopyWithAFlippedBitWhenThePoolIsOpenedForWriting)
{
    for (std::size_t copy = 0; copy < 2; ++copy) {
        auto disk = disk_with_pool();
        for (std::size_t byte = 0; byte < page_bytes; ++byte) {
            flip(disk->cached, copy, byte * 8 + byte % 8);
            const auto opened = open_pool(disk);
            ASSERT_TRUE(opened) << opened.error().message;
            ASSERT_TRUE(opened->facts().superblock_repaired) << "copy " << copy << " byte " << byte;
            ASSERT_EQ(std::memcmp(&superblock_of(disk->durable, 0), &superblock_of(disk->durable, 1), page_bytes), 0);
            ASSERT_EQ(judge_superblock(superblock_of(disk->durable, copy)), SuperblockState::good);
        }
    }
}

TEST(Superblock, RefusesThePoolWhenTheSameBitIsFlippedInBothCopies)
{
    auto disk = disk_with_pool();
    for (std::size_t bit = 0; bit < bits_of_copy; ++bit) {
        flip(disk->cached, 0, bit);
        flip(disk->cached, 1, bit);
        const auto opened = open_pool(disk);
        ASSERT_FALSE(opened) << "bit " << bit;
        const sp_error wanted = bit < 8 * sizeof(layout::superblock_magic) ? SP_E_NOT_A_POOL : SP_E_POOL_CORRUPT;
        ASSERT_EQ(opened.error().code, wanted) << "bit " << bit;
        flip(disk->cached, 0, bit);
        flip(disk->cached, 1, bit);
    }
}

TEST(Superblock, RefusesThePoolWhenDifferentBitsAreFlippedInTheCopies)
{
    auto disk = disk_with_pool();
    std::mt19937 random(1);
    for (int i = 0; i < 20'000; ++i) {
        const std::size_t bits[2] = {random() % bits_of_copy, random() % bits_of_copy};
        flip(disk->cached, 0, bits[0]);
        flip(disk->cached, 1, bits[1]);
        ASSERT_FALSE(open_pool(disk)) << "bits " << bits[0] << " and " << bits[1];
        flip(disk->cached, 0, bits[0]);
        flip(disk->cached, 1, bits[1]);
    }
}

TEST(Superblock, KeepsTheOtherCopyWhenOneIsTornAtAnySector)
{
    const Bytes old_content = disk_with_pool()->durable;
    Bytes new_content = old_content;
    for (std::size_t copy = 0; copy < 2; ++copy) {
        layout::Superblock& block = superblock_of(new_content, copy);
        ++block.sequence;
        ++block.generation;
        seal_superblock(block);
    }
    for (const std::byte before : {std::byte{0}, std::byte{0xff}, std::byte{0x77}}) {
        for (std::size_t copy = 0; copy < 2; ++copy) {
            for (std::size_t cut = 0; cut <= page_bytes; cut += sector_bytes) {
                for (const bool prefix : {true, false}) {
                    Bytes content = old_content;
                    const auto begin = static_cast<long>(copy * page_bytes);
                    if (before != std::byte{0x77}) {  // 0x77: over the old superblock.
                        std::fill_n(content.begin() + begin, page_bytes, before);
                    }
                    const auto from = begin + static_cast<long>(prefix ? 0 : cut);
                    const auto to = begin + static_cast<long>(prefix ? cut : page_bytes);
                    std::copy(new_content.begin() + from, new_content.begin() + to, content.begin() + from);
                    const auto opened = open_content(content, true);
                    ASSERT_TRUE(opened) << opened.error().message;
                    const auto generation = opened->facts().generation;
                    ASSERT_TRUE(generation == 1 || generation == 2);
                }
            }
        }
    }
}

TEST(Superblock, TakesTheCopyWithTheLargerSequenceNumber)
{
    for (std::size_t newer = 0; newer < 2; ++newer) {
        auto disk = disk_with_pool();
        layout::Superblock& block = superblock_of(disk->cached, newer);
        block.sequence += 1;
        block.generation = 77;
        seal_superblock(block);
        disk->durable = disk->cached;
        const auto opened = open_pool(disk);
        ASSERT_TRUE(opened);
        EXPECT_EQ(opened->facts().generation, 78U);
        EXPECT_FALSE(opened->facts().superblock_damaged) << "an older copy is not damage";
    }
}

TEST(Superblock, RefusesTwoDifferentCopiesWithOneSequenceNumber)
{
    Bytes content = disk_with_pool()->durable;
    superblock_of(content, 0).generation = 77;
    seal_superblock(superblock_of(content, 0));
    EXPECT_EQ(open_content(content).error().code, SP_E_POOL_CORRUPT);
}

TEST(Superblock, NamesBothVersionsOfANewerPool)
{
    Bytes content = disk_with_pool()->durable;
    for (std::size_t copy = 0; copy < 2; ++copy) {
        superblock_of(content, copy).format_version = 7;
        seal_superblock(superblock_of(content, copy));
    }
    const auto opened = open_content(content);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, SP_E_POOL_VERSION);
    EXPECT_NE(opened.error().text().find("version 7"), std::string_view::npos) << opened.error().message;
    EXPECT_NE(opened.error().text().find("1 to 1"), std::string_view::npos) << opened.error().message;
}

/// The example of docs/internals/format/pool.md.
layout::Superblock example_superblock()
{
    layout::Superblock block{};
    std::memcpy(block.magic, layout::superblock_magic, sizeof block.magic);
    block.format_version = 1;
    block.superblock_bytes = page_bytes;
    block.sequence = 7;
    for (std::uint8_t i = 0; i < 16; ++i) {
        block.uuid[i] = static_cast<std::uint8_t>(i * 0x11);
    }
    block.uuid[6] = 0x46;
    std::memcpy(block.engine_name, "pmthreads", 9);
    block.engine_layout_version = 1;
    block.page_bytes = page_bytes;
    block.base_address = window_base;
    block.image_bytes = 128 * mib;
    block.image_bytes_max = 16 * gib;
    block.generation = 6;
    block.file_bytes = std::uint64_t{66'578} * page_bytes;
    block.engine_area_first_page = 2;
    block.engine_area_pages = 16;
    block.created_unix_seconds = 1'790'000'000;
    block.durability = 1;
    block.segment_count = 2;
    block.segments[0] = {0, 16'384, 18, 33'280};
    block.segments[1] = {16'384, 16'384, 33'298, 33'280};
    seal_superblock(block);
    return block;
}

/// Offset, and the 16 bytes there; all others are zero. A change here is a change of the format.
const std::pair<std::size_t, const char*> example_bytes[] = {
    {0, "93 53 54 50 4f 4f 0d 0a 01 00 00 00 00 10 00 00"},    {16, "f9 70 8e 68 e8 b9 33 d7 07 00 00 00 00 00 00 00"},
    {32, "00 11 22 33 44 55 46 77 88 99 aa bb cc dd ee ff"},   {48, "70 6d 74 68 72 65 61 64 73 00 00 00 00 00 00 00"},
    {64, "01 00 00 00 00 10 00 00 00 00 00 00 00 00 00 00"},   {80, "00 00 00 00 00 48 00 00 00 00 00 08 00 00 00 00"},
    {96, "00 00 00 00 04 00 00 00 06 00 00 00 00 00 00 00"},   {112, "00 20 41 10 00 00 00 00 02 00 00 00 00 00 00 00"},
    {128, "10 00 00 00 00 00 00 00 80 3b b1 6a 00 00 00 00"},  {144, "01 00 00 00 02 00 00 00 00 00 00 00 00 00 00 00"},
    {2048, "00 00 00 00 00 00 00 00 00 40 00 00 00 00 00 00"}, {2064, "12 00 00 00 00 00 00 00 00 82 00 00 00 00 00 00"},
    {2080, "00 40 00 00 00 00 00 00 00 40 00 00 00 00 00 00"}, {2096, "12 82 00 00 00 00 00 00 00 82 00 00 00 00 00 00"},
};

TEST(Superblock, HasTheBytesThatTheFormatPageShows)
{
    if (window_base != std::uintptr_t{0x48} << 40) {
        GTEST_SKIP() << "under the thread sanitizer the window lies elsewhere";
    }
    const layout::Superblock block = example_superblock();
    ASSERT_TRUE(validate_superblock(block, "example"));
    std::string wanted(page_bytes * 2, '0');
    for (const auto& [offset, text] : example_bytes) {
        std::string digits(text);
        std::erase(digits, ' ');
        ASSERT_EQ(digits.size(), 32U);
        wanted.replace(offset * 2, digits.size(), digits);
    }
    std::string found;
    for (const std::byte byte : std::as_bytes(std::span(&block, 1))) {
        fmt::format_to(std::back_inserter(found), "{:02x}", static_cast<unsigned>(byte));
    }
    EXPECT_EQ(found, wanted);
}

struct Hostile {
    const char* what;
    sp_error wanted;
    void (*change)(layout::Superblock&);
};
using S = layout::Superblock;
constexpr std::uint64_t huge = UINT64_MAX;

// The pool they change: image 4 MiB of at most 64 MiB, engine area pages 2 to 5, one segment of
// 1024 image pages in file pages 6 to 9.
const Hostile hostile_fields[] = {
    {"version 0", SP_E_POOL_VERSION, [](S& s) { s.format_version = 0; }},
    {"version huge", SP_E_POOL_VERSION, [](S& s) { s.format_version = UINT32_MAX; }},
    {"unknown feature", SP_E_POOL_VERSION, [](S& s) { s.feature_bits = 2; }},
    {"raised from nothing", SP_E_POOL_CORRUPT, [](S& s) { s.feature_bits = 1; }},
    {"raised to no more", SP_E_POOL_CORRUPT, [](S& s) { s.feature_bits = 1, s.image_bytes_first_max = s.image_bytes_max; }},
    {"raised from too little", SP_E_POOL_CORRUPT, [](S& s) { s.feature_bits = 1, s.image_bytes_first_max = page_bytes; }},
    {"raised from no pages", SP_E_POOL_CORRUPT, [](S& s) { s.feature_bits = 1, s.image_bytes_first_max = 8 * mib + 1; }},
    {"a first maximum, never raised", SP_E_POOL_CORRUPT, [](S& s) { s.image_bytes_first_max = 8 * mib; }},
    {"last unknown feature", SP_E_POOL_VERSION, [](S& s) { s.feature_bits = 1U << 31; }},
    {"superblock size", SP_E_POOL_CORRUPT, [](S& s) { s.superblock_bytes = 8192; }},
    {"page size", SP_E_POOL_CORRUPT, [](S& s) { s.page_bytes = 0; }},
    {"sequence 0", SP_E_POOL_CORRUPT, [](S& s) { s.sequence = 0; }},
    {"sequence huge", SP_E_POOL_CORRUPT, [](S& s) { s.sequence = huge; }},
    {"generation 0", SP_E_POOL_CORRUPT, [](S& s) { s.generation = 0; }},
    {"generation huge", SP_E_POOL_CORRUPT, [](S& s) { s.generation = huge; }},
    {"uuid zero", SP_E_POOL_CORRUPT, [](S& s) { std::memset(s.uuid, 0, sizeof s.uuid); }},
    {"name not terminated", SP_E_POOL_CORRUPT, [](S& s) { std::memset(s.engine_name, 'a', 16); }},
    {"name empty", SP_E_POOL_CORRUPT, [](S& s) { std::memset(s.engine_name, 0, 16); }},
    {"name with rest", SP_E_POOL_CORRUPT,
     [](S& s) {
         s.engine_name[15] = 0;
         s.engine_name[14] = 'x';
     }},
    {"name with escape", SP_E_POOL_CORRUPT, [](S& s) { s.engine_name[0] = '\x1b'; }},
    {"durability", SP_E_POOL_CORRUPT, [](S& s) { s.durability = 2; }},
    {"reserved", SP_E_POOL_CORRUPT, [](S& s) { s.reserved[1887] = 1; }},
    {"base below window", SP_E_POOL_CORRUPT, [](S& s) { s.base_address = window_base - 2 * mib; }},
    {"base zero", SP_E_POOL_CORRUPT, [](S& s) { s.base_address = 0; }},
    {"base beyond", SP_E_POOL_CORRUPT, [](S& s) { s.base_address = window_base + window_bytes; }},
    {"base too late", SP_E_POOL_CORRUPT, [](S& s) { s.base_address = window_base + window_bytes - 62 * mib; }},
    {"base wraps", SP_E_POOL_CORRUPT, [](S& s) { s.base_address = huge - 2 * mib + 1; }},
    {"base unaligned", SP_E_POOL_CORRUPT, [](S& s) { s.base_address += page_bytes; }},
    {"image zero", SP_E_POOL_CORRUPT, [](S& s) { s.image_bytes = 0; }},
    {"image no pages", SP_E_POOL_CORRUPT, [](S& s) { s.image_bytes += 1; }},
    {"image above max", SP_E_POOL_CORRUPT, [](S& s) { s.image_bytes = 65 * mib; }},
    {"image huge", SP_E_POOL_CORRUPT, [](S& s) { s.image_bytes = huge & ~std::uint64_t{4095}; }},
    {"image below minimum", SP_E_POOL_CORRUPT,
     [](S& s) {
         s.image_bytes = page_bytes;
         s.segments[0].image_pages = 1;
     }},
    {"max huge", SP_E_POOL_CORRUPT, [](S& s) { s.image_bytes_max = huge & ~std::uint64_t{4095}; }},
    {"max no pages", SP_E_POOL_CORRUPT, [](S& s) { s.image_bytes_max += 7; }},
    {"max beyond window", SP_E_POOL_CORRUPT, [](S& s) { s.image_bytes_max = window_bytes + page_bytes; }},
    {"file no pages", SP_E_POOL_CORRUPT, [](S& s) { s.file_bytes += 512; }},
    {"file huge", SP_E_POOL_CORRUPT, [](S& s) { s.file_bytes = huge & ~std::uint64_t{4095}; }},
    {"file longer than segments", SP_E_POOL_CORRUPT, [](S& s) { s.file_bytes += page_bytes; }},
    {"file longer than the file", SP_E_POOL_TRUNCATED,
     [](S& s) {
         s.file_bytes += page_bytes;
         s.segments[0].file_pages += 1;
     }},
    {"area over superblock", SP_E_POOL_CORRUPT, [](S& s) { s.engine_area_first_page = 1; }},
    {"area beyond", SP_E_POOL_CORRUPT, [](S& s) { s.engine_area_first_page = 1000; }},
    {"area wraps", SP_E_POOL_CORRUPT, [](S& s) { s.engine_area_pages = huge; }},
    {"area over segment", SP_E_POOL_CORRUPT, [](S& s) { s.engine_area_pages = 5; }},
    {"area short", SP_E_POOL_CORRUPT, [](S& s) { s.engine_area_pages = 3; }},
    {"no segment", SP_E_POOL_CORRUPT, [](S& s) { s.segment_count = 0; }},
    {"segments 65", SP_E_POOL_CORRUPT, [](S& s) { s.segment_count = 65; }},
    {"segments huge", SP_E_POOL_CORRUPT, [](S& s) { s.segment_count = UINT32_MAX; }},
    {"segment record empty", SP_E_POOL_CORRUPT, [](S& s) { s.segment_count = 2; }},
    {"unused record", SP_E_POOL_CORRUPT, [](S& s) { s.segments[63].file_pages = 1; }},
    {"segment not at 0", SP_E_POOL_CORRUPT, [](S& s) { s.segments[0].first_image_page = 1; }},
    {"segment empty", SP_E_POOL_CORRUPT, [](S& s) { s.segments[0].image_pages = 0; }},
    {"segment short", SP_E_POOL_CORRUPT, [](S& s) { s.segments[0].image_pages = 1023; }},
    {"segment image huge", SP_E_POOL_CORRUPT, [](S& s) { s.segments[0].image_pages = huge; }},
    {"segment file 0", SP_E_POOL_CORRUPT, [](S& s) { s.segments[0].file_pages = 0; }},
    {"segment file huge", SP_E_POOL_CORRUPT, [](S& s) { s.segments[0].file_pages = huge; }},
    {"segment file wraps", SP_E_POOL_CORRUPT,
     [](S& s) {
         s.segments[0].first_file_page = huge - 3;
         s.segments[0].file_pages = 14;
     }},
    {"segment over superblock", SP_E_POOL_CORRUPT,
     [](S& s) {
         s.segments[0].first_file_page = 0;
         s.segments[0].file_pages = 10;
     }},
    {"segment over area", SP_E_POOL_CORRUPT,
     [](S& s) {
         s.segments[0].first_file_page = 5;
         s.segments[0].file_pages = 5;
     }},
    {"segment beyond file", SP_E_POOL_CORRUPT, [](S& s) { s.segments[0].file_pages = 5; }},
    {"segment too small for its engine", SP_E_POOL_CORRUPT,
     [](S& s) {
         s.segments[0].first_file_page = 7;
         s.segments[0].file_pages = 3;
     }},
    {"segments overlap", SP_E_POOL_CORRUPT,
     [](S& s) {
         s.segment_count = 2;
         s.segments[0] = {0, 512, 6, 3};
         s.segments[1] = {512, 512, 8, 2};
     }},
    {"segments swapped", SP_E_POOL_CORRUPT,
     [](S& s) {
         s.segment_count = 2;
         s.segments[0] = {0, 512, 8, 2};
         s.segments[1] = {512, 512, 6, 2};
     }},
    {"segments leave a hole in the image", SP_E_POOL_CORRUPT,
     [](S& s) {
         s.segment_count = 2;
         s.segments[0] = {0, 511, 6, 2};
         s.segments[1] = {512, 512, 8, 2};
     }},
};

TEST(Superblock, RefusesHostileFieldsUnderAChecksumThatHolds)
{
    const Bytes good = disk_with_pool()->durable;
    for (const Hostile& hostile : hostile_fields) {
        Bytes content = good;
        for (std::size_t copy = 0; copy < 2; ++copy) {
            hostile.change(superblock_of(content, copy));
            seal_superblock(superblock_of(content, copy));
        }
        for (const bool read_only : {false, true}) {
            const auto opened = open_content(content, read_only);
            ASSERT_FALSE(opened) << hostile.what;
            EXPECT_EQ(opened.error().code, hostile.wanted) << hostile.what << ": " << opened.error().message;
            EXPECT_EQ(opened.error().text().substr(0, 9), "fake.pool") << hostile.what;
        }
    }
}

TEST(Superblock, AcceptsOrRefusesRandomFieldsWithoutUndefinedBehaviour)
{
    const Bytes good = disk_with_pool()->durable;
    std::mt19937_64 random(3);
    const std::uint64_t interesting[] = {
        0, 1, 2, 4, 5, 6, 10, 1024, 4096, 4 * mib, 64 * mib, window_base, window_bytes, huge, huge - 4095, std::uint64_t{1} << 63};
    auto disk = std::make_shared<FakeDisk>(good);
    int accepted = 0;
    for (int i = 0; i < 30'000; ++i) {
        layout::Superblock block = superblock_copy(good, 0);
        auto* words = reinterpret_cast<std::uint64_t*>(&block);
        for (int changes = 0; changes < 3; ++changes) {
            const std::size_t word = 8 + random() % 11;  // feature_bits to segment_count
            const std::size_t record = 256 + random() % 12;
            words[random() % 2 != 0 ? word : record] = interesting[random() % std::size(interesting)];
        }
        seal_superblock(block);
        superblock_of(disk->cached, 0) = block;
        superblock_of(disk->cached, 1) = block;
        accepted += open_pool(disk, true).has_value() ? 1 : 0;
    }
    EXPECT_LT(accepted, 3'000);
}

}  // namespace
}  // namespace stillpoint::testing

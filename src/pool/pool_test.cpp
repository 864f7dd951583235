// Pool: creation, opening, growth; what each refuses and how it says so.
//   - What create() was asked is what open() finds.
//   - A file that is not a pool, not finished, cut, of another engine or newer gets an error of its own.
//   - A bad copy of the superblock is repaired by a writable open, and only by that.
//   - Growth reaches the maximum within the segment table, and changes nothing when it fails.

#include <gtest/gtest.h>

#include "pool/growth.hpp"
#include "support/pool_fixture.hpp"

namespace stillpoint::testing {
namespace {

bool says(const Failure& failure, std::string_view words) { return failure.text().find(words) != std::string_view::npos; }

TEST(PoolCreate, IsFoundAgainByOpenWithTheSameFacts)
{
    auto disk = std::make_shared<FakeDisk>(Pool::file_bytes_for(test_options()).value());
    const auto made = Pool::create(attach(disk, Durability::process), test_options());
    ASSERT_TRUE(made) << made.error().message;
    const auto opened = open_pool(disk);
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(opened->facts().uuid, made->facts().uuid);
    EXPECT_EQ(opened->facts().engine_name, "tester");
    EXPECT_EQ(opened->facts().engine_layout_version, 3U);
    EXPECT_EQ(opened->facts().format_version, layout::pool_format_version);
    EXPECT_EQ(opened->facts().durability, Durability::process);
    EXPECT_EQ(opened->facts().base_address, window_base);
    EXPECT_EQ(opened->facts().image_bytes, 4 * mib);
    EXPECT_EQ(opened->facts().image_bytes_max, 64 * mib);
    EXPECT_EQ(opened->facts().engine_area_first_page, 2U);
    EXPECT_EQ(opened->facts().engine_area_pages, 4U);
    EXPECT_EQ(opened->facts().file_bytes, disk->cached.size());
    EXPECT_EQ(made->facts().generation, 1U);
    EXPECT_EQ(opened->facts().generation, 2U);
    EXPECT_FALSE(opened->facts().superblock_damaged);
    ASSERT_EQ(opened->segments().size(), 1U);
    EXPECT_EQ(opened->segments()[0].image_pages, 1024U);
    EXPECT_EQ(opened->segments()[0].first_file_page, 6U);
    EXPECT_EQ(opened->segments()[0].file_pages, 4U);
}

TEST(PoolCreate, GivesEveryPoolItsOwnVersion4Uuid)
{
    const auto first = open_pool(disk_with_pool()).value();
    const auto second = open_pool(disk_with_pool()).value();
    EXPECT_NE(first.facts().uuid, second.facts().uuid);
    const std::string text = to_text(first.facts().uuid);
    EXPECT_EQ(text.size(), 36U);
    EXPECT_EQ(text[14], '4');
    EXPECT_EQ(to_text(Uuid{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255}), "00010203-0405-0607-0809-0a0b0c0d0eff");
}

TEST(PoolCreate, ZeroesTheEngineAreaOfAFileThatIsNotFresh)
{
    const auto size = Pool::file_bytes_for(test_options()).value();
    auto disk = std::make_shared<FakeDisk>(Bytes(size, std::byte{0xaa}));
    ASSERT_TRUE(Pool::create(attach(disk), test_options()));
    EXPECT_TRUE(std::all_of(disk->durable.begin() + 2 * page_bytes, disk->durable.begin() + 6 * page_bytes,
                            [](std::byte byte) { return byte == std::byte{0}; }));
}

TEST(PoolCreate, RefusesOptionsThatBreakARule)
{
    const auto refused = [](auto change) {
        auto options = test_options();
        change(options);
        const auto bytes = Pool::file_bytes_for(options);
        const auto made = Pool::create(attach(std::make_shared<FakeDisk>(1 * mib)), options);
        return !bytes && bytes.error().code == SP_E_INVALID_ARGUMENT && !made && made.error().code == SP_E_INVALID_ARGUMENT;
    };
    using O = Pool::CreateOptions;
    EXPECT_TRUE(refused([](O& o) { o.format.name = ""; }));
    EXPECT_TRUE(refused([](O& o) { o.format.name = "sixteen-letters-"; }));
    EXPECT_TRUE(refused([](O& o) { o.format.name = "Upper"; }));
    EXPECT_TRUE(refused([](O& o) { o.format.area_pages = UINT64_MAX; }));
    EXPECT_TRUE(refused([](O& o) { o.format.segment_file_pages = nullptr; }));
    EXPECT_TRUE(refused([](O& o) { o.format.segment_file_pages = [](std::uint64_t) { return UINT64_MAX; }; }));
    EXPECT_TRUE(refused([](O& o) { o.image_bytes = 4 * mib + 1; }));
    EXPECT_TRUE(refused([](O& o) { o.image_bytes = 4 * mib - page_bytes; }));
    EXPECT_TRUE(refused([](O& o) { o.image_bytes_max = 2 * mib; }));
    EXPECT_TRUE(refused([](O& o) { o.image_bytes_max = window_bytes + page_bytes; }));
    EXPECT_TRUE(refused([](O& o) { o.base_address = window_base + page_bytes; }));
    EXPECT_TRUE(refused([](O& o) { o.base_address = window_base - 2 * mib; }));
    EXPECT_TRUE(refused([](O& o) { o.base_address = window_base + window_bytes - 2 * mib; }));
    EXPECT_FALSE(refused([](O& o) { o.base_address = window_base + window_bytes - 64 * mib; }));
}

TEST(PoolCreate, RefusesAMediumThatIsTooSmall)
{
    const auto made = Pool::create(attach(std::make_shared<FakeDisk>(Pool::file_bytes_for(test_options()).value() - page_bytes)),
                                   test_options());
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, SP_E_INVALID_ARGUMENT);
}

TEST(PoolOpen, ThatIsRecordedLaterLeavesThePoolAsItWasUntilThenOrUntilItGrows)
{
    const auto disk = disk_with_pool();
    const Bytes before = disk->durable;
    {
        const auto refused = Pool::open(attach(disk), test_format, false, true);
        ASSERT_TRUE(refused);
        EXPECT_EQ(refused->facts().generation, 2u);
    }
    EXPECT_EQ(disk->operations, 0u);
    EXPECT_TRUE(disk->durable == before);
    {
        auto used = Pool::open(attach(disk), test_format, false, true);
        ASSERT_TRUE(used);
        ASSERT_TRUE(used->record_opening());
        const auto operations = disk->operations;
        ASSERT_TRUE(used->record_opening());
        EXPECT_EQ(disk->operations, operations);
    }
    EXPECT_EQ(superblock_copy(disk->durable, 0).generation, 2u);
}

TEST(PoolOpen, ThatIsRefusedAfterItGrewLeavesThePoolAsItWas)
{
    auto disk = disk_with_pool();
    const auto before = disk->durable;
    const auto operations = disk->operations;
    {
        auto refused = Pool::open(attach(disk), test_format, false, true);
        ASSERT_TRUE(refused);
        ASSERT_TRUE(refused->grow(5 * mib, test_format));
        ASSERT_TRUE(refused->grow(6 * mib, test_format));
        EXPECT_GE(refused->facts().image_bytes, 6 * mib);
        EXPECT_EQ(refused->segments().size(), 3U);
    }
    EXPECT_EQ(disk->operations, operations);
    EXPECT_TRUE(disk->durable == before);
    std::uint64_t grown_bytes = 0;
    {
        auto used = Pool::open(attach(disk), test_format, false, true);
        ASSERT_TRUE(used);
        ASSERT_TRUE(used->grow(5 * mib, test_format));
        ASSERT_TRUE(used->grow(6 * mib, test_format));
        grown_bytes = used->facts().image_bytes;
        ASSERT_TRUE(used->record_opening());
        EXPECT_EQ(used->facts().image_bytes, grown_bytes);
        ASSERT_TRUE(used->grow(grown_bytes + 1, test_format)) << "afterwards it grows as ever";
    }
    const auto again = open_pool(disk);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_GT(again->facts().image_bytes, grown_bytes);
    EXPECT_EQ(again->segments().size(), 4U);
}

TEST(PoolOpen, SaysThatAnEmptyFileIsNotAPool)
{
    const auto opened = open_content({});
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, SP_E_NOT_A_POOL);
    EXPECT_TRUE(says(opened.error(), "empty")) << opened.error().message;
}

TEST(PoolOpen, SaysThatAForeignFileIsNotAPool)
{
    for (const std::size_t size : {std::size_t{3}, std::size_t{5000}, std::size_t{1} << 20}) {
        const auto opened = open_content(Bytes(size, std::byte{'x'}));
        ASSERT_FALSE(opened);
        EXPECT_EQ(opened.error().code, SP_E_NOT_A_POOL);
    }
}

TEST(PoolOpen, SaysThatAFileOfZeroesWasNeverFinished)
{
    const auto opened = open_content(Bytes(1 << 20));
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, SP_E_NOT_A_POOL);
    EXPECT_TRUE(says(opened.error(), "never finished")) << opened.error().message;
}

TEST(PoolOpen, SaysThatACutFileIsTruncatedAtEveryPageCut)
{
    const Bytes whole = disk_with_pool()->durable;
    for (std::size_t size = 8; size < whole.size(); size += page_bytes / 2) {
        const auto opened = open_content(Bytes(whole.begin(), whole.begin() + static_cast<long>(size)));
        ASSERT_FALSE(opened);
        EXPECT_EQ(opened.error().code, SP_E_POOL_TRUNCATED) << size;
    }
}

TEST(PoolOpen, AcceptsAFileThatIsLongerThanItsSuperblockSays)
{
    Bytes content = disk_with_pool()->durable;
    content.resize(content.size() + 12345);
    EXPECT_TRUE(open_content(content));
}

TEST(PoolOpen, NamesBothEnginesWhereTheyDiffer)
{
    const auto opened = Pool::open(attach(disk_with_pool()), {"other", 3, 4, small_segments});
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, SP_E_POOL_ENGINE);
    EXPECT_TRUE(says(opened.error(), "tester") && says(opened.error(), "other"));
}

TEST(PoolOpen, TakesAnyEngineWhereNoneIsExpected)
{
    EXPECT_TRUE(Pool::open(attach(disk_with_pool()), EngineFormat{"", 0, 0, nullptr}, true));
}

TEST(PoolOpen, ComparesTheEnginesLayoutWithWhatIsExpected)
{
    const auto code = [](EngineFormat format) {
        const auto opened = Pool::open(attach(disk_with_pool()), format);
        return opened ? SP_OK : opened.error().code;
    };
    EXPECT_EQ(code({"tester", 2, 4, small_segments}), SP_E_POOL_VERSION);
    EXPECT_EQ(code({"tester", 4, 100, small_segments}), SP_E_POOL_VERSION);
    EXPECT_EQ(code({"tester", 3, 5, small_segments}), SP_E_POOL_CORRUPT);
    EXPECT_EQ(code({"tester", 3, 4, [](std::uint64_t pages) { return pages; }}), SP_E_POOL_CORRUPT);
}

TEST(PoolOpen, GivesTheMediumThePoolsDurability)
{
    auto disk = std::make_shared<FakeDisk>(Pool::file_bytes_for(test_options()).value());
    ASSERT_TRUE(Pool::create(attach(disk, Durability::process), test_options()));
    for (const bool read_only : {false, true}) {
        const auto opened = Pool::open(attach(disk, Durability::power), test_format, read_only);
        ASSERT_TRUE(opened);
        EXPECT_EQ(opened->medium().durability(), Durability::process);
    }
}

TEST(PoolOpen, WritesNothingWhenItOpensForReading)
{
    auto disk = disk_with_pool();
    superblock_of(disk->cached, 0).magic[0] = 0;
    disk->durable = disk->cached;
    const Bytes before = disk->cached;
    disk->read_only = true;
    auto opened = open_pool(disk, true);
    ASSERT_TRUE(opened);
    EXPECT_TRUE(opened->facts().superblock_damaged);
    EXPECT_FALSE(opened->facts().superblock_repaired);
    EXPECT_EQ(opened->facts().generation, 1U);
    EXPECT_EQ(disk->cached, before);
    const auto grown = opened->grow(8 * mib, test_format);
    ASSERT_FALSE(grown);
    EXPECT_EQ(grown.error().code, SP_E_POOL_READ_ONLY);
}

TEST(PoolOpen, PassesOnThatTheFileCannotBeWritten)
{
    auto disk = disk_with_pool();
    disk->read_only = true;
    const auto opened = open_pool(disk);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, SP_E_POOL_READ_ONLY);
}

TEST(PoolOpen, RepairsACopyThatCannotBeRead)
{
    for (const std::uint64_t page : {std::uint64_t{0}, std::uint64_t{1}}) {
        auto disk = disk_with_pool();
        disk->unreadable_page = page;
        const auto opened = open_pool(disk);
        ASSERT_TRUE(opened) << opened.error().message;
        EXPECT_TRUE(opened->facts().superblock_repaired);
    }
}

TEST(PoolOpen, KeepsCompatibleFeaturesThatItDoesNotKnow)
{
    auto disk = disk_with_pool();
    for (const std::size_t copy : {std::size_t{0}, std::size_t{1}}) {
        layout::Superblock& block = superblock_of(disk->cached, copy);
        block.feature_bits |= std::uint64_t{1} << 63;
        block.reserved[7] = 9;
        seal_superblock(block);
    }
    disk->durable = disk->cached;
    auto opened = open_pool(disk);
    ASSERT_TRUE(opened) << opened.error().message;
    ASSERT_TRUE(opened->grow(8 * mib, test_format));
    for (const std::size_t copy : {std::size_t{0}, std::size_t{1}}) {
        EXPECT_EQ(superblock_of(disk->durable, copy).feature_bits, std::uint64_t{1} << 63);
        EXPECT_EQ(superblock_of(disk->durable, copy).reserved[7], 9);
    }
}

TEST(PoolGrow, AppendsASegmentThatOpenFindsAgain)
{
    auto disk = disk_with_pool();
    auto pool = open_pool(disk).value();
    ASSERT_TRUE(pool.grow(4 * mib + 1, test_format));
    EXPECT_EQ(pool.facts().image_bytes, 8 * mib) << "a small image doubles";
    ASSERT_TRUE(pool.grow(40 * mib, test_format));
    EXPECT_EQ(pool.facts().image_bytes, 40 * mib) << "a larger request is met";
    ASSERT_TRUE(pool.grow(41 * mib, test_format));
    EXPECT_EQ(pool.facts().image_bytes, 64 * mib) << "the maximum caps the policy";
    const auto full = pool.grow(65 * mib, test_format);
    ASSERT_FALSE(full);
    EXPECT_EQ(full.error().code, SP_E_POOL_FULL);
    const auto reopened = open_pool(disk);
    ASSERT_TRUE(reopened) << reopened.error().message;
    EXPECT_EQ(reopened->facts().image_bytes, 64 * mib);
    ASSERT_EQ(reopened->segments().size(), 4U);
    EXPECT_EQ(reopened->segments()[3].first_image_page, 40 * mib / page_bytes);
    EXPECT_EQ(reopened->facts().file_bytes, disk->durable.size());
}

TEST(PoolGrow, FallsBackToWhatWasAskedOnADiskThatIsNearlyFull)
{
    auto disk = disk_with_pool(test_options(16 * mib));
    auto pool = open_pool(disk).value();
    disk->size_limit = disk->cached.size() + page_bytes;  // One MiB of image.
    ASSERT_TRUE(pool.grow(16 * mib + 1, test_format));
    EXPECT_EQ(pool.facts().image_bytes, 17 * mib);
    const auto full = pool.grow(18 * mib, test_format);
    ASSERT_FALSE(full);
    EXPECT_EQ(full.error().code, SP_E_NO_SPACE);
    EXPECT_EQ(pool.facts().image_bytes, 17 * mib);
    disk->size_limit = FakeDisk::never;
    EXPECT_TRUE(pool.grow(18 * mib, test_format)) << "a full disk is not a lasting fault";
}

TEST(PoolGrow, FreezesThePoolAfterAFailedWriteOrSyncAndKeepsTheOldFacts)
{
    for (std::uint64_t operation = 1; operation <= 4; ++operation) {
        auto disk = disk_with_pool();
        auto pool = open_pool(disk).value();
        disk->fail_at = disk->operations + operation;  // Number 0 is the resize.
        const auto grown = pool.grow(8 * mib, test_format);
        ASSERT_FALSE(grown);
        EXPECT_EQ(grown.error().code, SP_E_IO);
        EXPECT_EQ(pool.facts().image_bytes, 4 * mib);
        EXPECT_EQ(pool.segments().size(), 1U);
        const auto again = pool.grow(8 * mib, test_format);
        ASSERT_FALSE(again);
        EXPECT_EQ(again.error().code, SP_E_POOL_READ_ONLY);
    }
}

TEST(PoolGrow, ZeroesWhatLiesBehindTheEndOfTheFile)
{
    auto disk = disk_with_pool();
    const std::size_t end = disk->cached.size();
    disk->cached.resize(end + 3 * page_bytes + 100, std::byte{0x55});
    disk->durable = disk->cached;
    auto pool = open_pool(disk).value();
    ASSERT_TRUE(pool.grow(8 * mib, test_format));
    EXPECT_TRUE(std::all_of(disk->durable.begin() + static_cast<long>(end), disk->durable.end(),
                            [](std::byte byte) { return byte == std::byte{0}; }));
}

TEST(PoolRaise, GivesALargerMaximumThatOpenFindsAgain)
{
    auto disk = disk_with_pool();
    {
        auto pool = open_pool(disk).value();
        EXPECT_EQ(pool.facts().image_bytes_first_max, 64 * mib);
        ASSERT_TRUE(pool.raise_maximum(512 * mib));
        EXPECT_EQ(pool.facts().image_bytes_max, 512 * mib);
        ASSERT_TRUE(pool.grow(100 * mib, test_format));
    }
    auto pool = open_pool(disk).value();
    EXPECT_EQ(pool.facts().image_bytes_max, 512 * mib);
    EXPECT_EQ(pool.facts().image_bytes_first_max, 64 * mib);
    EXPECT_GE(pool.facts().image_bytes, 100 * mib);
    ASSERT_TRUE(pool.raise_maximum(gib));
    EXPECT_EQ(pool.facts().image_bytes_first_max, 64 * mib);
}

TEST(PoolRaise, RefusesWhatIsNoLargerAndWhatLeavesTheWindow)
{
    auto disk = disk_with_pool();
    auto pool = open_pool(disk).value();
    const Bytes before = disk->cached;
    for (const std::uint64_t maximum : {std::uint64_t{0}, 32 * mib, 64 * mib, 64 * mib + 1, window_bytes + 2 * mib, ~std::uint64_t{4095}}) {
        const auto raised = pool.raise_maximum(maximum);
        ASSERT_FALSE(raised) << maximum;
        EXPECT_EQ(raised.error().code, SP_E_INVALID_ARGUMENT);
    }
    EXPECT_TRUE(disk->cached == before);
    EXPECT_EQ(open_pool(disk, true).value().raise_maximum(gib).error().code, SP_E_POOL_READ_ONLY);
}

TEST(PoolGrow, ReachesOneTebibyteWithinTheSegmentTable)
{
    for (std::uint64_t first = Pool::image_bytes_min; first <= window_bytes; first = first * 3 / 2 / page_bytes * page_bytes) {
        EXPECT_LE(1 + growth::segments_to_maximum(first, window_bytes), Pool::segments_max);
    }
    std::uint64_t last = 0;
    for (std::uint64_t size = 4 * mib; size < window_bytes; size += size / 7) {
        const std::uint64_t next = growth::next_image_bytes(size, window_bytes);
        EXPECT_GT(next, size);
        EXPECT_GE(next, last) << "a larger size never leads to a smaller next one";
        last = next;
    }
    for (std::size_t left = 1; left <= Pool::segments_max; ++left) {
        std::size_t used = 0;
        for (std::uint64_t size = 64 * mib; size < window_bytes; ++used) {
            ASSERT_LT(used, left) << "few segments are enough, each larger than it would be";
            size = growth::next_of_few(size, window_bytes, left - used);
        }
    }
}

}  // namespace
}  // namespace stillpoint::testing

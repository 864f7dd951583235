// Crashes inside create(), open() and grow(), at every write, sync and resize:
//   - After a kill or a power cut the file opens, with the old facts or the new ones, never a
//     mix, and never older ones than a call that returned has promised.
//   - An unfinished creation is not_a_pool and says so, or a whole, empty pool.
//   - Opening after the crash may crash in the same way, any number of times.
//   - Canary: with any one sync left out that the protocol needs, these tests fail.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <set>
#include <string>

#include "arch/checksum.hpp"
#include "support/pool_fixture.hpp"

namespace stillpoint::testing {
namespace {

constexpr std::uint64_t grown_bytes = 8 * mib;

/// The promises of the calls that have returned so far.
struct Promise {
    std::uint64_t generation = 0;
    std::uint64_t image_bytes = 0;
    std::uint64_t image_bytes_max = 0;
};

using Action = std::function<void(const std::shared_ptr<FakeDisk>&, Promise&)>;
using DiskPointer = std::shared_ptr<FakeDisk>;

void open_once(const DiskPointer& disk, Promise& promise)
{
    if (const auto opened = open_pool(disk)) {
        promise = {opened->facts().generation, opened->facts().image_bytes};
    }
}

void open_and_grow_twice(const DiskPointer& disk, Promise& promise)
{
    auto opened = open_pool(disk);
    if (!opened) {
        return;
    }
    promise = {opened->facts().generation, opened->facts().image_bytes};
    for (std::uint64_t size = grown_bytes; size <= 2 * grown_bytes; size += grown_bytes) {
        if (opened->facts().image_bytes < size && !opened->grow(size, test_format)) {
            return;
        }
        promise.image_bytes = opened->facts().image_bytes;
    }
}

void open_and_raise(const DiskPointer& disk, Promise& promise)
{
    auto opened = open_pool(disk);
    if (!opened) {
        return;
    }
    promise = {opened->facts().generation, opened->facts().image_bytes, promise.image_bytes_max};
    for (const std::uint64_t maximum : {128 * mib, 256 * mib}) {
        if (opened->facts().image_bytes_max < maximum && !opened->raise_maximum(maximum)) {
            return;
        }
        promise.image_bytes_max = opened->facts().image_bytes_max;
    }
}

/// The complaint about what a crash left of a pool, or nothing.
std::optional<std::string> judge(const Bytes& content, const Promise& promise)
{
    const auto opened = open_content(content, true);
    if (!opened) {
        return opened.error().message;
    }
    const PoolFacts& facts = opened->facts();
    if (facts.generation < promise.generation || facts.image_bytes < promise.image_bytes) {
        return "a promise was broken: generation " + std::to_string(facts.generation) + ", image " + std::to_string(facts.image_bytes);
    }
    const std::set<std::uint64_t> maxima = {64 * mib, 128 * mib, 256 * mib};
    if (facts.image_bytes_max < promise.image_bytes_max || !maxima.contains(facts.image_bytes_max) ||
        facts.image_bytes_first_max != 64 * mib) {
        return "maximum " + std::to_string(facts.image_bytes_max) + ", first " + std::to_string(facts.image_bytes_first_max);
    }
    const std::uint64_t segments = static_cast<std::uint64_t>(std::countr_zero(facts.image_bytes) - std::countr_zero(4 * mib) + 1);
    if (!std::has_single_bit(facts.image_bytes) || opened->segments().size() != segments) {
        return "a mix: image " + std::to_string(facts.image_bytes) + " in " + std::to_string(opened->segments().size()) + " segments";
    }
    return std::nullopt;
}

/// Runs `action` from `start` with a crash in each of its operations, and once without; hands the disk
/// (as a kill leaves it) and what was promised to `visit`.
void for_each_crash(const FakeDisk& start, const Promise& before, const Action& action,
                    const std::function<void(const FakeDisk&, const Promise&)>& visit)
{
    for (std::uint64_t crash_at = 0;; ++crash_at) {
        auto disk = std::make_shared<FakeDisk>(start);
        disk->operations = 0;
        disk->syncs = 0;
        disk->crash_at = crash_at;
        Promise promise = before;
        action(disk, promise);
        const bool crashed = disk->operations > crash_at;
        disk->crash_at = FakeDisk::never;
        disk->ignored_sync = FakeDisk::never;
        visit(*disk, promise);
        if (!crashed) {
            return;
        }
    }
}

/// The first complaint over every crash inside `action`, by a kill and by a power cut.
std::optional<std::string> explore(const FakeDisk& start, const Promise& before, const Action& action)
{
    std::optional<std::string> complaint;
    for_each_crash(start, before, action, [&](const FakeDisk& disk, const Promise& promise) {
        const auto check = [&](const Bytes& content) {
            if (!complaint) {
                complaint = judge(content, promise);
            }
        };
        check(disk.cached);
        disk.for_each_power_cut(check);
    });
    return complaint;
}

/// Damages one copy in every sector, so that its repair may tear anywhere.
FakeDisk with_damage(FakeDisk disk, std::size_t copy)
{
    std::fill_n(disk.cached.begin() + static_cast<long>(copy * page_bytes), page_bytes, std::byte{0x3c});
    disk.durable = disk.cached;
    return disk;
}

TEST(PoolCrash, LeavesAPoolWhenItStrikesInsideOpenOrGrow)
{
    const FakeDisk pool = *disk_with_pool();
    const Promise promise{1, 4 * mib};
    for (const FakeDisk& start : {pool, with_damage(pool, 0), with_damage(pool, 1)}) {
        for (const auto& action : {open_and_grow_twice, open_and_raise}) {
            const auto complaint = explore(start, promise, action);
            EXPECT_FALSE(complaint) << *complaint;
        }
    }
}

TEST(PoolCrash, LeavesAPoolWhenAPowerCutStrikesARaiseAfterAKill)
{
    for_each_crash(*disk_with_pool(), {1, 4 * mib}, open_and_raise, [](const FakeDisk& killed, const Promise& promise) {
        const auto complaint = explore(killed, promise, open_and_raise);
        ASSERT_FALSE(complaint) << *complaint;
    });
}

TEST(PoolCrash, LeavesAPoolWhenAPowerCutStrikesTheOpenAfterAKill)
{
    for_each_crash(*disk_with_pool(), {1, 4 * mib}, open_and_grow_twice, [](const FakeDisk& killed, const Promise& promise) {
        const auto complaint = explore(killed, promise, open_and_grow_twice);
        ASSERT_FALSE(complaint) << *complaint;
    });
}

TEST(PoolCrash, LeavesAPoolWhenPowerCutsStrikeOneOpenAfterAnother)
{
    std::set<std::uint64_t> images;  // Many crashes leave the same bytes under the same promise.
    for_each_crash(*disk_with_pool(), {1, 4 * mib}, open_and_grow_twice, [&](const FakeDisk& first, const Promise& promise) {
        first.for_each_power_cut([&](const Bytes& content) {
            const std::uint64_t seed = promise.generation * 1024 + promise.image_bytes;
            if (!images.insert(checksum64(content.data(), content.size(), seed)).second) {
                return;
            }
            const auto complaint = explore(FakeDisk(content), promise, open_once);
            ASSERT_FALSE(complaint) << *complaint;
        });
    });
    EXPECT_GT(images.size(), 30U);
}

TEST(PoolCrash, KeepsALongerFileAfterAGrowthThatDidNotFinishAndUsesItLater)
{
    auto disk = disk_with_pool();
    auto pool = open_pool(disk).value();
    const std::size_t before = disk->cached.size();
    disk->crash_at = disk->operations;  // The resize takes place, and no more.
    ASSERT_FALSE(pool.grow(grown_bytes, test_format));
    disk->crash_at = FakeDisk::never;
    EXPECT_GT(disk->cached.size(), before);
    auto again = open_pool(disk).value();
    EXPECT_EQ(again.facts().image_bytes, 4 * mib);
    const std::size_t longer = disk->cached.size();
    ASSERT_TRUE(again.grow(grown_bytes, test_format));
    EXPECT_EQ(disk->cached.size(), longer);
    EXPECT_EQ(again.facts().image_bytes, grown_bytes);
}

/// The complaint about what a crash inside create() left, or nothing.
std::optional<std::string> judge_creation(const Bytes& content, bool returned, bool was_zero)
{
    const auto opened = open_content(content, true);
    if (!opened) {
        // While the marker's own sector is under way, it may be what it was before, or garbage.
        const std::byte first = content[0];
        const bool no_marker = first == std::byte{0xee} || (!was_zero && first == std::byte{0xaa});
        const bool says_so = opened.error().text().find("never finished") != std::string_view::npos;
        if (!returned && opened.error().code == SP_E_NOT_A_POOL && (says_so || no_marker)) {
            return std::nullopt;
        }
        return std::string(opened.error().message);
    }
    const bool zero = std::all_of(content.begin() + 2 * page_bytes, content.begin() + 6 * page_bytes,
                                  [](std::byte byte) { return byte == std::byte{0}; });
    return zero && opened->facts().generation == 1 ? std::nullopt : std::optional<std::string>("half formatted");
}

std::optional<std::string> explore_creation(std::byte fill, std::uint64_t ignored_sync)
{
    FakeDisk start(Bytes(Pool::file_bytes_for(test_options()).value(), fill));
    start.ignored_sync = ignored_sync;
    std::optional<std::string> complaint;
    const Action create = [](const DiskPointer& disk, Promise& promise) {
        promise.generation = Pool::create(attach(disk), test_options()) ? 1 : 0;
    };
    for_each_crash(start, {}, create, [&](const FakeDisk& disk, const Promise& promise) {
        const auto check = [&](const Bytes& content) {
            if (!complaint) {
                complaint = judge_creation(content, promise.generation == 1, fill == std::byte{0});
            }
        };
        check(disk.cached);
        disk.for_each_power_cut(check);
    });
    return complaint;
}

TEST(PoolCrash, LeavesAnUnfinishedFileOrAWholePoolWhenItStrikesInsideCreate)
{
    for (const std::byte fill : {std::byte{0}, std::byte{0xaa}}) {
        const auto complaint = explore_creation(fill, FakeDisk::never);
        EXPECT_FALSE(complaint) << *complaint;
    }
}

TEST(PoolCrashCanary, IsCaughtWhenCreateLeavesOutASync)
{
    EXPECT_TRUE(explore_creation(std::byte{0xaa}, 0)) << "zeroes before superblocks";
    EXPECT_TRUE(explore_creation(std::byte{0xaa}, 1)) << "one copy before the other";
}

TEST(PoolCrashCanary, IsCaughtWhenOpenOrGrowLeaveOutASync)
{
    // Syncs of open: 0 before it writes, 1 and 2 after each copy; of each growth: two more. Of
    // the last update the second sync is needed only by the next one.
    for (std::uint64_t ignored = 0; ignored < 6; ++ignored) {
        bool caught = false;
        for_each_crash(*disk_with_pool(), {1, 4 * mib}, open_and_grow_twice, [&](const FakeDisk& killed, const Promise& promise) {
            FakeDisk start = killed;
            start.ignored_sync = ignored;
            caught = caught || explore(start, promise, open_and_grow_twice).has_value();
        });
        EXPECT_TRUE(caught) << "sync " << ignored;
    }
}

}  // namespace
}  // namespace stillpoint::testing

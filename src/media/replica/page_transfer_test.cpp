// A medium gets the bytes of another in one step. Invariants:
//   - a kill or a power cut inside the transfer, or inside its end by a later process, leaves all of the old bytes or all of the new ones;
//   - a transfer that returned has happened, whatever happens then;
//   - with any one sync left out that this needs, the test fails.

#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "media/replica/page_transfer.hpp"
#include "support/fake_medium.hpp"

namespace stillpoint::testing {
namespace {

constexpr std::uint64_t pages = 4;
using DiskPointer = std::shared_ptr<FakeDisk>;

/// Pages 0 and 3 are alike in both, the others are not.
Bytes content(int value)
{
    Bytes bytes(pages * page_bytes);
    for (std::uint64_t page = 0; page < pages; ++page) {
        std::fill_n(bytes.begin() + static_cast<long>(page * page_bytes), page_bytes, std::byte(page % 3 == 0 ? 1 : value));
    }
    return bytes;
}

Bytes present_bytes(const FakeDisk& disk) { return {disk.cached.begin(), disk.cached.begin() + pages * page_bytes}; }

bool transfer(const DiskPointer& to)
{
    const auto from = attach(std::make_shared<FakeDisk>(content(5)));
    return transfer_pages(*from, *attach(to)).has_value();
}

/// The complaint about what a later process finds.
std::optional<std::string> judge(const Bytes& left, bool has_returned)
{
    const auto disk = std::make_shared<FakeDisk>(left);
    if (auto finished = finish_transfer(*attach(disk)); !finished) {
        return std::string(finished.error().text());
    }
    const Bytes found = present_bytes(*disk);
    if (found == content(5) || (found == content(2) && !has_returned)) {
        return std::nullopt;
    }
    return found == content(2) ? "the transfer is lost" : "a mix of old and new pages";
}

/// Runs `action` from `start` with a crash in each of its operations, and once without; the first complaint.
std::optional<std::string> explore(const FakeDisk& start, const std::function<bool(const DiskPointer&)>& action, bool is_promised = false,
                                   std::uint64_t ignored_sync = FakeDisk::never)
{
    std::optional<std::string> complaint;
    for (std::uint64_t crash_at = 0;; ++crash_at) {
        const auto disk = std::make_shared<FakeDisk>(start);
        disk->operations = 0;
        disk->syncs = 0;
        disk->crash_at = crash_at;
        disk->ignored_sync = ignored_sync;
        const bool has_returned = action(disk) || is_promised;
        const auto check = [&](const Bytes& left) { complaint = complaint ? complaint : judge(left, has_returned); };
        check(disk->cached);
        disk->for_each_power_cut(check);
        if (disk->operations <= crash_at) {
            return complaint;
        }
    }
}

TEST(PageTransfer, LeavesAllOldBytesOrAllNewOnesWhenACrashStrikes)
{
    const auto complaint = explore(FakeDisk(content(2)), transfer);
    EXPECT_FALSE(complaint) << *complaint;
}

TEST(PageTransfer, IsEndedByALaterProcessWhichMayCrashToo)
{
    for (std::uint64_t crash_at = 0;; ++crash_at) {
        const auto disk = std::make_shared<FakeDisk>(content(2));
        disk->crash_at = crash_at;
        const bool has_returned = transfer(disk);
        disk->crash_at = FakeDisk::never;
        const auto finish = [](const DiskPointer& left) { return finish_transfer(*attach(left)).has_value() && false; };
        const auto complaint = explore(*disk, finish, has_returned);
        ASSERT_FALSE(complaint) << *complaint << ", after a crash in operation " << crash_at;
        if (has_returned) {
            return;
        }
    }
}

TEST(PageTransfer, WithoutOneOfItsSyncsIsNoticed)
{
    for (const std::uint64_t sync : {0U, 1U, 2U}) {
        EXPECT_TRUE(explore(FakeDisk(content(2)), transfer, false, sync)) << "sync " << sync;
    }
}

TEST(PageTransfer, OfEqualBytesWritesNothing)
{
    const auto disk = std::make_shared<FakeDisk>(content(5));
    EXPECT_TRUE(transfer(disk));
    EXPECT_EQ(disk->operations, 0U);
    EXPECT_EQ(disk->cached.size(), pages * page_bytes);
}

TEST(PageTransfer, UsesTheRoomOfAnEarlierOne)
{
    const auto disk = std::make_shared<FakeDisk>(content(2));
    ASSERT_TRUE(transfer(disk));
    const std::size_t size = disk->cached.size();
    const auto back = attach(std::make_shared<FakeDisk>(content(9)));
    ASSERT_TRUE(transfer_pages(*back, *attach(disk)));
    EXPECT_EQ(present_bytes(*disk), content(9));
    EXPECT_EQ(disk->cached.size(), size);
}

TEST(PageTransfer, IsSeenByAReaderBeforeItIsEnded)
{
    for (std::uint64_t crash_at = 0;; ++crash_at) {
        const auto disk = std::make_shared<FakeDisk>(content(2));
        disk->crash_at = crash_at;
        const bool has_returned = transfer(disk);
        auto reader = with_transfer_finished(attach(disk));
        ASSERT_TRUE(reader);
        Bytes found(pages * page_bytes);
        ASSERT_TRUE((*reader)->read(0, found));
        ASSERT_TRUE(found == content(5) || (found == content(2) && !has_returned));
        if (has_returned) {
            return;
        }
    }
}

TEST(PageTransfer, WithDamageIsRefused)
{
    // After the trailer is durable, before a page is in its place: resize, numbers, pages, sync, trailer, sync.
    const auto disk = std::make_shared<FakeDisk>(content(2));
    disk->crash_at = 6;
    ASSERT_FALSE(transfer(disk));
    disk->crash_at = FakeDisk::never;
    disk->cached = disk->durable;
    disk->cached[(pages + 1) * page_bytes + 7] ^= std::byte{1};
    const auto finished = finish_transfer(*attach(disk));
    ASSERT_FALSE(finished);
    EXPECT_EQ(finished.error().code, SP_E_POOL_CORRUPT);
}

}  // namespace
}  // namespace stillpoint::testing

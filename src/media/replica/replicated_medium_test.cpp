// A medium and its replica, with a program that commits as engines do: pages of one of two places, a sync, a commit page, a sync.
// Invariants, with a crash of either side in any of its operations, by a kill or a power cut:
//   - the replica is a state that recovery accepts: the pages of its commit are whole;
//   - at level remote it has every epoch that was acknowledged; at level local every one that wait() has returned for;
//   - it has no epoch that was not begun here;
//   - with one of the replica's syncs left out, the test fails.

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "media/replica/replicated_medium.hpp"
#include "os/clock.hpp"
#include "support/fake_medium.hpp"
#include "support/temporary_directory.hpp"

namespace stillpoint::testing {
namespace {

constexpr std::uint64_t places = 2;
constexpr std::uint64_t pages_each = 3;
constexpr std::uint64_t replica_pages = 1 + places * pages_each;  ///< a commit page, then those of even epochs, then those of odd ones
constexpr std::uint64_t no_deadline = UINT64_MAX;
using DiskPointer = std::shared_ptr<FakeDisk>;

struct alignas(page_bytes) Page {
    std::byte bytes[page_bytes];
};

DiskPointer new_disk() { return std::make_shared<FakeDisk>(replica_pages * page_bytes); }

std::unique_ptr<ReplicatedMedium> both(const DiskPointer& local, const DiskPointer& remote, ReplicaSettings settings)
{
    ReplicaRecord record{};
    record.state = ReplicaState::differing;
    auto made = ReplicatedMedium::make(attach(local), attach(remote), std::move(settings), record, std::nullopt);
    EXPECT_TRUE(made);
    return std::move(*made);
}

Result<void> put(Medium& medium, std::uint64_t page, std::uint64_t count, std::uint64_t epoch)
{
    std::vector<Page> source(count);
    std::vector<BlockWrite> batch;
    for (std::uint64_t i = 0; i < count; ++i) {
        std::fill_n(source[i].bytes, page_bytes, std::byte(epoch));
        batch.push_back({(page + i) * page_bytes, source[i].bytes, page_bytes});
    }
    return medium.write(batch);
}

Result<void> commit(Medium& medium, std::uint64_t epoch)
{
    auto done = put(medium, 1 + epoch % places * pages_each, pages_each, epoch);
    done = done ? medium.sync() : done;
    done = done ? put(medium, 0, 1, epoch) : done;
    return done ? medium.sync() : done;
}

/// The epoch that a crash has left, or the complaint. One sector of the commit page decides.
std::optional<std::string> judge(const Bytes& left, std::uint64_t least, std::uint64_t most)
{
    const auto epoch = static_cast<std::uint64_t>(left[0]);
    if (epoch == 0xee) {
        return std::nullopt;  // Garbage in the sector that was under way: engines have a second copy.
    }
    if (epoch < least || epoch > most) {
        return "epoch " + std::to_string(epoch) + " of " + std::to_string(least) + " to " + std::to_string(most);
    }
    const std::uint64_t first = (1 + epoch % places * pages_each) * page_bytes;
    const bool is_whole = std::all_of(left.begin() + static_cast<long>(first),
                                      left.begin() + static_cast<long>(first + pages_each * page_bytes),
                                      [&](std::byte byte) { return byte == std::byte(epoch); });
    return is_whole || epoch == 0 ? std::nullopt : std::optional("the pages of epoch " + std::to_string(epoch) + " are not whole");
}

struct Crash {
    std::uint64_t of_local = FakeDisk::never;
    std::uint64_t of_remote = FakeDisk::never;
    std::uint64_t ignored_sync = FakeDisk::never;  ///< of the replica
};

/// The first complaint about the replica that a history with this crash leaves. `has_crashed`: it was long enough for the crash.
std::optional<std::string> history(ReplicaLevel level, const Crash& crash, bool& has_crashed)
{
    constexpr std::uint64_t epochs = 4;
    const DiskPointer local = new_disk();
    const DiskPointer remote = new_disk();
    local->crash_at = crash.of_local;
    remote->crash_at = crash.of_remote;
    remote->ignored_sync = crash.ignored_sync;
    std::uint64_t promised = 0;
    std::uint64_t begun = 0;
    {
        ReplicaSettings settings;
        settings.level = level;
        const auto medium = both(local, remote, settings);
        static_cast<void>(medium->publish());
        for (std::uint64_t epoch = 1; epoch <= epochs; ++epoch) {
            begun = epoch;
            if (!commit(*medium, epoch)) {
                break;
            }
            if (level == ReplicaLevel::remote || (epoch == 2 && medium->wait(no_deadline))) {
                promised = epoch;
            }
        }
    }
    has_crashed = local->operations > crash.of_local || remote->operations > crash.of_remote;
    std::optional<std::string> complaint;
    const auto check = [&](const Bytes& left) { complaint = complaint ? complaint : judge(left, promised, begun); };
    check(remote->cached);
    remote->for_each_power_cut(check);
    return complaint;
}

/// The record of a replica lies beside its pool, whose name here is one in the working directory.
class Replicas : public ::testing::Test {
    void SetUp() override { std::filesystem::current_path(directory_.path()); }
    void TearDown() override { std::filesystem::current_path(before_); }

    std::filesystem::path before_ = std::filesystem::current_path();
    test::TemporaryDirectory directory_;
};

TEST_F(Replicas, LeavesAStateOfTheMediumInItsReplicaWhereverEitherCrashes)
{
    for (const ReplicaLevel level : {ReplicaLevel::remote, ReplicaLevel::local}) {
        for (const bool is_local : {false, true}) {
            bool has_crashed = true;
            for (std::uint64_t at = 0; has_crashed; ++at) {
                const Crash crash = is_local ? Crash{.of_local = at} : Crash{.of_remote = at};
                const auto complaint = history(level, crash, has_crashed);
                ASSERT_FALSE(complaint) << *complaint << "; crash in operation " << at << (is_local ? " here" : " of the replica");
            }
        }
    }
}

TEST_F(Replicas, WithoutASyncOfItsReplicaIsNoticed)
{
    // The sync of publish() is the first; then that of an epoch's pages, and that of its commit.
    for (const std::uint64_t sync : {3U, 4U}) {
        bool found = false;
        bool has_crashed = true;
        for (std::uint64_t at = 0; has_crashed; ++at) {
            found = history(ReplicaLevel::remote, {.of_remote = at, .ignored_sync = sync}, has_crashed).has_value() || found;
        }
        EXPECT_TRUE(found) << "sync " << sync;
    }
}

DiskPointer reopened;
std::uint64_t reopenings = 0;

/// Writes that were not synced are gone, as where the connection to a cluster is lost.
Result<std::unique_ptr<Medium>> reopen(const ReplicaSettings&)
{
    ++reopenings;
    reopened->cached = reopened->durable;
    reopened->in_flight.clear();
    reopened->fail_at = FakeDisk::never;
    return attach(reopened);
}

TEST_F(Replicas, SendsEverythingSinceTheLastSyncAgainAfterAFailure)
{
    for (std::uint64_t at = 0;; ++at) {
        const DiskPointer local = new_disk();
        reopened = new_disk();
        reopened->fail_at = at;
        reopenings = 0;
        ReplicaSettings settings;
        settings.level = ReplicaLevel::remote;
        settings.reopen = &reopen;
        settings.reopen_pause_ns = 1000;
        {
            const auto medium = both(local, reopened, settings);
            ASSERT_TRUE(medium->publish());
            for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
                ASSERT_TRUE(commit(*medium, epoch));
            }
        }
        EXPECT_EQ(local->durable, reopened->durable) << "failure of operation " << at;
        if (reopenings == 0) {
            return;
        }
    }
}

TEST_F(Replicas, FollowsGrowthAndClearsWhatTheReplicaHasThere)
{
    const DiskPointer local = new_disk();
    const DiskPointer remote = std::make_shared<FakeDisk>((replica_pages + 2) * page_bytes);
    std::fill(remote->cached.begin() + replica_pages * page_bytes, remote->cached.end(), std::byte{7});  // As a transfer leaves it.
    remote->durable = remote->cached;
    {
        const auto medium = both(local, remote, {});
        ASSERT_TRUE(medium->resize((replica_pages + 4) * page_bytes));
        ASSERT_TRUE(put(*medium, replica_pages + 1, 1, 9));
        ASSERT_TRUE(medium->sync());
        EXPECT_EQ(local->durable, remote->durable);
        EXPECT_EQ(medium->size_bytes(), (replica_pages + 4) * page_bytes);
    }
}

TEST_F(Replicas, TakesMoreThanItsMemoryInOneBatch)
{
    constexpr std::uint64_t many = 2000;
    const DiskPointer local = std::make_shared<FakeDisk>(many * page_bytes);
    const DiskPointer remote = std::make_shared<FakeDisk>(many * page_bytes);
    ReplicaSettings settings;
    settings.buffer_bytes = mib;
    settings.level = ReplicaLevel::local;
    {
        const auto medium = both(local, remote, settings);
        ASSERT_TRUE(medium->publish());
        for (std::uint64_t round = 1; round <= 3; ++round) {
            ASSERT_TRUE(put(*medium, 0, many, round));
        }
        ASSERT_TRUE(medium->sync());
        ASSERT_TRUE(medium->wait(no_deadline));
        EXPECT_EQ(medium->figures().bytes_waiting, 0U);
        EXPECT_EQ(medium->figures().lag_ns, 0U);
    }
    EXPECT_EQ(local->durable, remote->durable);
}

TEST_F(Replicas, WhoseReplicaIsAnothersAcknowledgesNothingMore)
{
    const DiskPointer local = new_disk();
    const DiskPointer remote = new_disk();
    ReplicaSettings settings;
    settings.level = ReplicaLevel::local;
    const auto medium = both(local, remote, settings);
    ASSERT_TRUE(medium->publish());
    ASSERT_TRUE(commit(*medium, 1));
    ASSERT_TRUE(medium->wait(no_deadline));
    remote->fail_at = remote->operations;
    static_cast<void>(commit(*medium, 2));
    EXPECT_FALSE(medium->wait(os::deadline_after_ms(5000)));
    EXPECT_FALSE(commit(*medium, 3));
    EXPECT_FALSE(medium->check_intact());
}

}  // namespace
}  // namespace stillpoint::testing

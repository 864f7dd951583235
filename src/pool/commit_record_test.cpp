// Commit records: three copies, and what is believed when some of them are gone.
//   - Damage to both copies of the newest record is noticed, and its witness is used in their place: nothing is lost.
//   - Whatever an interrupted commit leaves is the epoch before or the new one, and never refused.
//   - A witness of an earlier run does not bring its epoch back: the pool is refused, and the older epoch can be chosen.
//   - A repair, and a return to an older epoch, can be cut off anywhere.

#include "pool/commit_record.hpp"

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <vector>

#include "support/patched_medium.hpp"
#include "support/pool_fixture.hpp"

namespace stillpoint::testing {
namespace {

constexpr std::size_t area = 2 * page_bytes;  ///< of test_format's pools

CommitRecord record_of(const Pool& pool, std::uint64_t epoch)
{
    CommitRecord record{};
    record.magic = commit_magic;
    record.pool_uuid = pool.facts().uuid;
    record.epoch = epoch;
    record.generation = pool.facts().generation;
    record.table_digest = epoch * 7;
    return record;
}

void commit(Pool& pool, std::uint64_t epoch)
{
    ASSERT_TRUE(store_commit_record(pool, record_of(pool, epoch)));
    ASSERT_TRUE(pool.medium().sync());
}

/// Opened as by a run: the opening is recorded by begin_run().
Result<Pool> open_for_a_run(const std::shared_ptr<FakeDisk>& disk) { return Pool::open(attach(disk), test_format, false, true); }

/// The bytes of a pool whose runs have committed up to `epoch`, one after the other.
Bytes committed(std::uint64_t epoch)
{
    auto disk = disk_with_pool();
    auto pool = open_for_a_run(disk);
    EXPECT_TRUE(begin_run(*pool));
    for (std::uint64_t each = 1; each <= epoch; ++each) {
        commit(*pool, each);
    }
    return disk->durable;
}

/// 0: none, or the pool is refused.
std::uint64_t newest_of(const Bytes& content, Findings* findings = nullptr)
{
    const auto pool = open_content(content, true);
    const auto record = pool ? load_commit_record(*pool, findings) : std::optional<CommitRecord>();
    return record && *record ? (*record)->epoch : 0;
}

void damage(Bytes& content, std::uint64_t first_page, std::byte value, std::size_t offset = 0)
{
    for (std::uint64_t page = first_page; page < first_page + 2; ++page) {
        std::fill_n(content.begin() + static_cast<long>(area + page * page_bytes + offset), sizeof(CommitRecord), value);
    }
}

/// Both copies of the record of that epoch have other bytes.
Bytes without_pair(Bytes content, std::uint64_t epoch, std::byte value = std::byte{0x5a})
{
    damage(content, epoch % 2 * 2, value);
    return content;
}

class Heard final : public Findings {
public:
    std::vector<std::string> remarks;

private:
    void tell(const Failure& failure, bool) override { remarks.emplace_back(failure.text()); }
};

TEST(CommitRecord, IsFoundByItsThirdCopyWhenBothOfItsPairAreDamaged)
{
    for (const std::uint64_t epoch : {1U, 2U, 7U, 8U}) {
        for (const std::byte value : {std::byte{0}, std::byte{0x5a}, std::byte{0xff}}) {
            const Bytes content = without_pair(committed(epoch), epoch, value);
            Heard heard;
            EXPECT_EQ(newest_of(content, &heard), epoch);
            EXPECT_EQ(heard.remarks.size(), value == std::byte{0} ? 0U : 1U);
        }
    }
}

TEST(CommitRecord, IsFoundByItsThirdCopyOnMappedMediaToo)
{
    const auto file = std::make_shared<PatchedFile>(committed(0));
    auto pool = Pool::open(std::make_unique<PatchedMedium>(file, true), test_format);
    ASSERT_TRUE(pool);
    for (std::uint64_t epoch = 1; epoch <= 8; ++epoch) {
        commit(*pool, epoch);
        EXPECT_EQ(newest_of(without_pair(file->bytes(), epoch)), epoch);
    }
}

TEST(CommitRecord, IsWrittenAgainFromItsThirdCopyWhateverCutsThatOff)
{
    for (const std::uint64_t epoch : {7U, 8U}) {
        const Bytes damaged = without_pair(committed(epoch), epoch);
        for (std::uint64_t crash_at = 0;; ++crash_at) {
            auto disk = std::make_shared<FakeDisk>(damaged);
            auto pool = open_for_a_run(disk);
            ASSERT_TRUE(pool);
            disk->fail_at = disk->operations + crash_at;
            const bool ended = begin_run(*pool).has_value();
            disk->for_each_power_cut([&](const Bytes& content) { EXPECT_EQ(newest_of(content), epoch) << crash_at; });
            if (ended) {
                EXPECT_GT(crash_at, 4U);
                Bytes without_witness = disk->durable;
                damage(without_witness, 0, std::byte{0}, witness_offset);
                damage(without_witness, 2, std::byte{0}, witness_offset);
                EXPECT_EQ(newest_of(without_witness), epoch);
                break;
            }
        }
    }
}

TEST(CommitRecord, OfAnInterruptedCommitOrTheOneBeforeIsInForce)
{
    for (const std::uint64_t epoch : {7U, 8U}) {
        auto disk = std::make_shared<FakeDisk>(committed(epoch - 1));
        auto pool = open_for_a_run(disk);
        ASSERT_TRUE(pool && begin_run(*pool));
        ASSERT_TRUE(store_commit_record(*pool, record_of(*pool, epoch)));
        std::uint64_t old_ones = 0;
        std::uint64_t new_ones = 0;
        disk->for_each_power_cut([&](const Bytes& content) {
            const std::uint64_t found = newest_of(content);
            EXPECT_TRUE(found == epoch || found == epoch - 1) << found;
            (found == epoch ? new_ones : old_ones) += 1;
        });
        EXPECT_GT(old_ones, 0U);
        EXPECT_GT(new_ones, 0U);
    }
}

/// A pool of which a later run has recorded its opening, and then the newest pair was damaged.
Bytes opened_since_and_damaged(std::uint64_t epoch)
{
    auto disk = std::make_shared<FakeDisk>(committed(epoch));
    EXPECT_TRUE(open_pool(disk));
    return without_pair(disk->durable, epoch);
}

/// Runs that ended before they committed anything have overwritten nothing of it.
TEST(CommitRecord, IsTakenFromAWitnessOfAnEarlierRunToo)
{
    const Bytes content = opened_since_and_damaged(8);
    auto pool = open_content(content, true);
    ASSERT_TRUE(pool);
    EXPECT_EQ((*load_commit_record(*pool))->epoch, 8U);
    EXPECT_EQ(newest_epoch_named(*pool), 8U);
    pool->leave_out_epochs_from(8);
    EXPECT_EQ((*load_commit_record(*pool))->epoch, 7U);
}

TEST(CommitRecord, IsLeftForTheOneBeforeWhateverCutsThatOff)
{
    for (std::uint64_t crash_at = 0;; ++crash_at) {
        auto disk = std::make_shared<FakeDisk>(committed(8));
        auto pool = open_for_a_run(disk);
        ASSERT_TRUE(pool);
        disk->fail_at = disk->operations + crash_at;
        const bool ended = drop_epochs_from(*pool, 8).has_value();
        disk->for_each_power_cut([&](const Bytes& content) {
            const std::uint64_t found = newest_of(content);
            EXPECT_TRUE(found == 7 || (found == 8 && !ended)) << found;
        });
        if (ended) {
            EXPECT_EQ(newest_epoch_named(*pool), 7U);
            break;
        }
    }
}

TEST(CommitRecord, ThatNoWitnessSpeaksOfLooksAsAfterAnInterruptedCommit)
{
    Bytes content = without_pair(committed(8), 8);
    damage(content, 2, std::byte{0}, witness_offset);
    Heard heard;
    EXPECT_EQ(newest_of(content, &heard), 7U);
    ASSERT_EQ(heard.remarks.size(), 1U);
    EXPECT_NE(heard.remarks.front().find("interrupted"), std::string::npos);
}

}  // namespace
}  // namespace stillpoint::testing

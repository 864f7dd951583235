// The decisions of an opening with a replica, on disks in memory. Invariants:
//   - the side that has what the other lacks is what both have afterwards; where each has something, or that cannot be told, the opening is
//     refused, and no byte of either side or of their record changes;
//   - a crash of either side, inside any operation of an opening, changes nothing of that: the next one ends as if it had not been there.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <vector>

#include "pool/replicated_pool.hpp"
#include "support/pool_fixture.hpp"
#include "support/replicated_machine.hpp"

namespace stillpoint::testing {
namespace {

struct alignas(page_bytes) PoolPage {
    std::byte bytes[page_bytes];
};

Result<void> put_value(Medium& medium, const PoolFacts& facts, int value)
{
    const auto page = std::make_unique<PoolPage>();
    std::fill_n(page->bytes, page_bytes, std::byte(value));
    const BlockWrite write{facts.engine_area_first_page * page_bytes, page->bytes, page_bytes};
    return medium.write({&write, 1});
}

class ReplicatedPool : public ::testing::Test {
protected:
    [[nodiscard]] MediumOptions local_options() const
    {
        MediumOptions options;
        options.path = machine_.local();
        return options;
    }

    [[nodiscard]] static ReplicaOptions replica_options(ReplicaLevel level)
    {
        ReplicaOptions replica;
        replica.name = ReplicatedMachine::replica();
        replica.level = level;
        return replica;
    }

    /// As a run does: opens both or makes both, and changes a page.
    void run_both(int value, ReplicaLevel level = ReplicaLevel::remote) { ASSERT_NO_FATAL_FAILURE(work(value, level, false)); }

    /// The replica has not got what this run has written when its process is killed; at level local that was acknowledged.
    void run_both_and_kill(int value, ReplicaLevel level) { ASSERT_NO_FATAL_FAILURE(work(value, level, true)); }

    void run_alone(const std::string& path, int value)
    {
        MediumOptions options;
        options.path = path;
        auto medium = open_medium(options);
        ASSERT_TRUE(medium) << medium.error().message;
        const auto pool = Pool::open(std::move(*medium), test_format);
        ASSERT_TRUE(pool) << pool.error().message;
        ASSERT_TRUE(put_value(pool->medium(), pool->facts(), value));
        ASSERT_TRUE(pool->medium().sync());
    }

    Result<void> open() const
    {
        auto both = open_replicated(local_options(), replica_options(ReplicaLevel::remote));
        return both ? Result<void>{} : Result<void>{pass_on(both.error())};
    }

    /// Both sides have this value and, but for what a transfer has left at the end of the replica, one content.
    void expect_both(int value, const std::string& what = "") const
    {
        const Bytes& here = machine_.disk(machine_.local())->cached;
        const Bytes& there = machine_.disk(ReplicatedMachine::replica())->cached;
        ASSERT_GE(there.size(), here.size()) << what;
        EXPECT_TRUE(std::equal(here.begin(), here.end(), there.begin())) << what;
        const auto pool = open_content(here, true);
        ASSERT_TRUE(pool) << what << pool.error().message;
        EXPECT_EQ(here[pool->facts().engine_area_first_page * page_bytes], std::byte(value)) << what;
    }

    void expect_opens_with(int value) const
    {
        const auto opened = open();
        ASSERT_TRUE(opened) << opened.error().message;
        expect_both(value);
    }

    /// With words of the message, and nothing changes.
    void expect_refused(sp_error code, const std::string& words)
    {
        const ReplicatedMachine::State before = machine_.state();
        const auto opened = open();
        ASSERT_FALSE(opened);
        EXPECT_EQ(opened.error().code, code) << opened.error().message;
        EXPECT_NE(std::string(opened.error().message).find(words), std::string::npos) << opened.error().message;
        const ReplicatedMachine::State after = machine_.state();
        EXPECT_EQ(before.record, after.record);
        ASSERT_EQ(before.files.size(), after.files.size());
        for (const auto& [path, file] : before.files) {
            EXPECT_EQ(file.disk->cached, after.files.at(path).disk->cached) << path;
            EXPECT_EQ(file.disk->writer, after.files.at(path).disk->writer) << path;
        }
    }

    /// The pool here is made again, with value 2; `kills` gets what a kill leaves right before the new file has its name, and right after.
    void make_again(ReplicaLevel level, std::vector<ReplicatedMachine::State>& kills)
    {
        run_both(1, level);
        run_alone(ReplicatedMachine::replica(), 2);
        machine_.around_replace.clear();
        expect_opens_with(2);
        kills = machine_.around_replace;
        ASSERT_EQ(kills.size(), 2u);
    }

    ReplicatedMachine machine_;

private:
    void work(int value, ReplicaLevel level, bool is_killed)
    {
        auto both = machine_.has(machine_.local()) || machine_.has(ReplicatedMachine::replica())
                        ? open_replicated(local_options(), replica_options(level))
                        : create_replicated(local_options(), replica_options(level), Pool::file_bytes_for(test_options()).value());
        ASSERT_TRUE(both) << both.error().message;
        const bool is_new = !machine_.disk(ReplicatedMachine::replica())->named;
        auto pool = is_new ? Pool::create(std::move(*both), test_options()) : Pool::open(std::move(*both), test_format);
        ASSERT_TRUE(pool) << pool.error().message;
        ASSERT_TRUE(pool->medium().publish());
        const auto& replica = machine_.disk(ReplicatedMachine::replica());
        replica->fail_at = is_killed ? replica->operations : FakeDisk::never;
        machine_.does_not_answer = is_killed;
        ASSERT_TRUE(put_value(pool->medium(), pool->facts(), value));
        if (!is_killed || level == ReplicaLevel::local) {
            ASSERT_TRUE(pool->medium().sync());
        }
        {
            const Pool ended = std::move(*pool);
        }
        replica->fail_at = FakeDisk::never;
        machine_.does_not_answer = false;
    }
};

TEST_F(ReplicatedPool, IsMadeOnBothSides)
{
    run_both(1);
    expect_both(1);
    expect_opens_with(1);
}

TEST_F(ReplicatedPool, OfWhichBothSidesAreGoneIsMissing) { expect_refused(SP_E_POOL_MISSING, "neither"); }

TEST_F(ReplicatedPool, GoesOnAtOnceAfterAnEndInWhichNothingWasLeftOver)
{
    run_both(1);
    run_both(2);
    const ReplicatedMachine::State before = machine_.state();
    expect_opens_with(2);
    EXPECT_EQ(before.files.at(ReplicatedMachine::replica()).disk->cached, machine_.disk(ReplicatedMachine::replica())->cached);
}

TEST_F(ReplicatedPool, SendsWhatOnlyThePoolHereHas)
{
    for (const ReplicaLevel level : {ReplicaLevel::remote, ReplicaLevel::local}) {
        run_both(1);
        run_both_and_kill(2, level);
        EXPECT_NE(machine_.disk(machine_.local())->cached, machine_.disk(ReplicatedMachine::replica())->cached);
        expect_opens_with(2);
    }
}

TEST_F(ReplicatedPool, WhoseRunWasKilledBeforeASyncStaysOnTheDiskOnceItIsSent)
{
    run_both(1);
    run_both_and_kill(2, ReplicaLevel::remote);
    expect_opens_with(2);
    FakeDisk& here = *machine_.disk(machine_.local());
    here.cached = here.durable;  // A power cut.
    expect_opens_with(2);
}

TEST_F(ReplicatedPool, SendsWhatARunWithoutTheReplicaHasDone)
{
    run_both(1);
    run_alone(machine_.local(), 2);
    expect_opens_with(2);
}

TEST_F(ReplicatedPool, IsMadeAgainOfAReplicaThatAnotherMachineHasWorkedOn)
{
    for (const ReplicaLevel level : {ReplicaLevel::remote, ReplicaLevel::local}) {
        run_both(1, level);
        run_alone(ReplicatedMachine::replica(), 2);
        expect_opens_with(2);
    }
}

TEST_F(ReplicatedPool, OfWhichNothingMoreWasAcknowledgedHereIsMadeAgainAfterAKillToo)
{
    run_both(1);
    run_both_and_kill(2, ReplicaLevel::remote);
    run_alone(ReplicatedMachine::replica(), 3);
    expect_opens_with(3);
}

TEST_F(ReplicatedPool, OfWhichMoreMayHaveBeenAcknowledgedHereThanAnotherMachineHadIsRefused)
{
    run_both(1);
    run_both_and_kill(2, ReplicaLevel::local);
    run_alone(ReplicatedMachine::replica(), 3);
    expect_refused(SP_E_DIVERGED, "another machine has taken over");
}

TEST_F(ReplicatedPool, WithBothSidesAheadIsRefused)
{
    run_both(1);
    run_alone(machine_.local(), 2);
    run_alone(ReplicatedMachine::replica(), 3);
    expect_refused(SP_E_DIVERGED, "each was written without the other");
    // The way out of the message.
    machine_.put(machine_.local() + ".old", machine_.disk(machine_.local())->cached);
    machine_.remove(machine_.local());
    expect_opens_with(3);
}

TEST_F(ReplicatedPool, IsMadeAgainWhereASideIsGone)
{
    run_both(1);
    machine_.remove(machine_.local());
    expect_opens_with(1);
    machine_.remove(ReplicatedMachine::replica());
    expect_opens_with(1);
    machine_.remove(machine_.local());
    machine_.put_record("");
    expect_opens_with(1);
}

TEST_F(ReplicatedPool, WithoutARecordIsRefused)
{
    run_both(1);
    run_alone(machine_.local(), 2);
    machine_.put_record("");
    expect_refused(SP_E_DIVERGED, "no record says which of them is newer");
}

TEST_F(ReplicatedPool, OfWhichBothSidesHaveTheSameBytesNeedsNoRecord)
{
    run_both(1);
    machine_.put_record("");
    expect_opens_with(1);
    // Made again of a replica that another machine had worked on, and killed before that was recorded.
    const std::string record = machine_.state().record;
    run_alone(ReplicatedMachine::replica(), 2);
    expect_opens_with(2);
    machine_.put_record(record);
    machine_.disk(ReplicatedMachine::replica())->writer = 0;
    expect_opens_with(2);
    // Only this machine has used it, and its pool was gone.
    const std::string last = machine_.state().record;
    machine_.put(machine_.local(), machine_.disk(machine_.local())->cached);
    machine_.put_record(last);
    expect_opens_with(2);
}

TEST_F(ReplicatedPool, WithTheRecordOfAnotherPoolIsRefused)
{
    run_both(1);
    const std::string record = machine_.state().record;
    machine_.remove(machine_.local());
    machine_.remove(ReplicatedMachine::replica());
    machine_.put_record("");
    run_both(2);
    run_alone(ReplicatedMachine::replica(), 3);
    machine_.put_record(record);
    expect_refused(SP_E_DIVERGED, "the record beside the pool is of another pool");
}

TEST_F(ReplicatedPool, WhoseReplicaIsAnotherPoolIsRefused)
{
    run_both(1);
    machine_.put(ReplicatedMachine::replica(), disk_with_pool()->cached);
    expect_refused(SP_E_DIVERGED, "two different pools");
}

TEST_F(ReplicatedPool, OfWhichAnOlderCopyWasPutInItsPlaceIsRefused)
{
    run_both(1);
    const Bytes old = machine_.disk(machine_.local())->cached;
    run_both(2);
    machine_.put(machine_.local(), old);
    expect_refused(SP_E_DIVERGED, "an older copy");
    // The copy may have been used since.
    run_alone(machine_.local(), 3);
    run_alone(ReplicatedMachine::replica(), 4);
    expect_refused(SP_E_DIVERGED, "an older copy");
}

TEST_F(ReplicatedPool, WithAnyByteOfItsRecordDamagedIsRefused)
{
    run_both(1);
    const std::string sound = machine_.state().record;
    ASSERT_EQ(sound.size(), sizeof(ReplicaRecord));
    for (std::size_t at = 0; at < sound.size(); ++at) {
        std::string damaged = sound;
        damaged[at] = static_cast<char>(damaged[at] ^ 1);
        machine_.put_record(damaged);
        const auto opened = open();
        ASSERT_FALSE(opened) << at;
        EXPECT_EQ(opened.error().code, SP_E_POOL_CORRUPT) << at;
    }
    machine_.put_record(sound.substr(0, 100));
    expect_refused(SP_E_POOL_CORRUPT, "is damaged");
}

TEST_F(ReplicatedPool, WhoseReplicaDoesNotAnswerIsRefused)
{
    run_both(1);
    machine_.does_not_answer = true;
    expect_refused(SP_E_IO, "does not answer");
}

TEST_F(ReplicatedPool, WhoseReplicaCannotBeReadIsRefused)
{
    run_both(1);
    machine_.disk(ReplicatedMachine::replica())->unreadable_page = 0;
    expect_refused(SP_E_IO, "read at");
    // Both sides are compared before anything is sent.
    run_alone(machine_.local(), 2);
    expect_refused(SP_E_IO, "read at");
}

TEST_F(ReplicatedPool, WhoseReplicaIsEmptyIsRefused)
{
    run_both(1);
    const std::size_t size = machine_.disk(machine_.local())->cached.size();
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{page_bytes}, size}) {
        machine_.put(ReplicatedMachine::replica(), Bytes(bytes));
        expect_refused(SP_E_NOT_A_POOL, ReplicatedMachine::replica());
    }
}

TEST_F(ReplicatedPool, WhoseDurabilityIsTheProcessIsRefused)
{
    const auto disk = std::make_shared<FakeDisk>(Pool::file_bytes_for(test_options()).value());
    ASSERT_TRUE(Pool::create(attach(disk, Durability::process), test_options()));
    machine_.put(machine_.local(), disk->cached);
    expect_refused(SP_E_UNSUPPORTED, "durability is process");
}

/// A crash inside each operation of one side while both are opened, by a kill or a power cut: the next opening ends as it should have.
void crash_everywhere(ReplicatedMachine& machine, const std::string& path, const std::function<Result<void>()>& open,
                      const std::function<void(const std::string&)>& expect)
{
    const ReplicatedMachine::State start = machine.state();
    for (std::uint64_t at = 0;; ++at) {
        const std::string where = path + ", crash in operation " + std::to_string(at);
        machine.restore(start);
        machine.crashing_path = path;
        machine.crashing_operation = at;
        machine.arm();
        const bool has_opened = open().has_value();
        machine.crashing_operation = FakeDisk::never;
        machine.arm();
        const ReplicatedMachine::State crashed = machine.state();
        const auto go_on = [&] {
            const auto opened = open();
            ASSERT_TRUE(opened) << where << ": " << opened.error().message;
            expect(where);
        };
        ASSERT_NO_FATAL_FAILURE(go_on());
        if (has_opened) {
            return;
        }
        if (!crashed.files.contains(path)) {
            continue;
        }
        crashed.files.at(path).disk->for_each_power_cut([&](const Bytes& left) {
            machine.restore(crashed);
            FakeDisk& disk = *machine.disk(path);
            disk.durable = disk.cached = left;
            disk.in_flight.clear();
            if (!::testing::Test::HasFatalFailure()) {
                go_on();
            }
        });
        if (::testing::Test::HasFatalFailure()) {
            return;
        }
    }
}

TEST_F(ReplicatedPool, IsSentOverCrashesOfItsOpening)
{
    run_both(1);
    run_alone(machine_.local(), 2);
    for (const std::string& path : {machine_.local(), ReplicatedMachine::replica()}) {
        crash_everywhere(machine_, path, [this] { return open(); }, [this](const std::string& where) { expect_both(2, where); });
    }
}

TEST_F(ReplicatedPool, IsMadeAgainOverCrashesOfItsOpening)
{
    run_both(1);
    run_alone(ReplicatedMachine::replica(), 2);
    for (const std::string& path : {machine_.local() + ".incoming", ReplicatedMachine::replica()}) {
        crash_everywhere(machine_, path, [this] { return open(); }, [this](const std::string& where) { expect_both(2, where); });
    }
}

TEST_F(ReplicatedPool, KilledWhereTheNewFileGetsItsNameOpensAsIfItHadNotBeen)
{
    for (const ReplicaLevel level : {ReplicaLevel::remote, ReplicaLevel::local}) {
        std::vector<ReplicatedMachine::State> kills;
        ASSERT_NO_FATAL_FAILURE(make_again(level, kills));
        for (const ReplicatedMachine::State& killed : kills) {
            machine_.restore(killed);
            expect_opens_with(2);
            EXPECT_FALSE(machine_.has(machine_.local() + ".incoming"));
            // The other machine goes on before the next start.
            machine_.restore(killed);
            run_alone(ReplicatedMachine::replica(), 3);
            expect_opens_with(3);
            // And is killed in its last work, where a run here follows that is killed, too.
            run_both_and_kill(4, ReplicaLevel::remote);
            expect_opens_with(4);
        }
    }
}

TEST_F(ReplicatedPool, KilledWhereTheNewFileHasItsNameAndThenRunAloneIsRefused)
{
    std::vector<ReplicatedMachine::State> kills;
    ASSERT_NO_FATAL_FAILURE(make_again(ReplicaLevel::remote, kills));
    for (const ReplicatedMachine::State& killed : kills) {
        machine_.restore(killed);
        run_alone(machine_.local(), 3);
        run_alone(ReplicatedMachine::replica(), 4);
        expect_refused(SP_E_DIVERGED, "each was written without the other");
    }
    // A copy of the old pool is put back over the new one.
    machine_.restore(kills.back());
    machine_.put(machine_.local(), kills.front().files.at(machine_.local()).disk->cached);
    expect_refused(SP_E_DIVERGED, "an older copy");
}

TEST_F(ReplicatedPool, TakesAwayTheFileOfAnOpeningThatWasCutOff)
{
    run_both(1);
    const std::string incoming = machine_.local() + ".incoming";
    std::ofstream(incoming) << "half";
    expect_opens_with(1);
    EXPECT_FALSE(std::filesystem::exists(incoming));
}

TEST_F(ReplicatedPool, WithASideGoneIsMadeAgainOverCrashesOfItsOpening)
{
    run_both(1);
    const ReplicatedMachine::State both = machine_.state();
    machine_.remove(machine_.local());
    crash_everywhere(
        machine_, machine_.local() + ".incoming", [this] { return open(); }, [this](const std::string& where) { expect_both(1, where); });
    machine_.restore(both);
    machine_.remove(ReplicatedMachine::replica());
    crash_everywhere(
        machine_, ReplicatedMachine::replica(), [this] { return open(); }, [this](const std::string& where) { expect_both(1, where); });
}

}  // namespace
}  // namespace stillpoint::testing

// The model of the commit protocols (bench/model). Invariants:
//   attempts are conserved; all time of all threads is accounted for
//   one thread without variation takes the sum of its costs
//   dearer or scarcer things never make a system faster
//   systems with sequential markers stay below the rate of markers; SPHT does not
//   equal seeds give equal results
//   descriptions are read with distrust

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "../../bench/model/descriptions.hpp"
#include "../../bench/model/json_value.hpp"
#include "../../bench/model/run.hpp"

namespace bench::model {
namespace {

const std::filesystem::path descriptions = BENCH_MODEL_DESCRIPTIONS;

Machine paper_machine() { return read_machine(descriptions / "machines/optane_two_sockets.json"); }
Workload workload_named(const std::string& name) { return read_workload(descriptions / "workloads" / (name + ".json")); }

const ProtocolKind& system_named(std::string_view name)
{
    for (const ProtocolKind& kind : all_protocols()) {
        if (kind.name == name) {
            return kind;
        }
    }
    throw std::runtime_error("no such system");
}

RunResult run_of(std::string_view system, const Machine& machine, const Workload& workload, int threads, std::uint64_t seed = 1,
                 std::uint64_t transactions = 3000)
{
    return run_model(system_named(system), machine, workload, threads, transactions, seed);
}

double rate_of(std::string_view system, const Machine& machine, const Workload& workload, int threads)
{
    return run_of(system, machine, workload, threads).transactions_per_s;
}

/// One class without variation and conflicts, and costs that are easy to add.
Workload plain_workload()
{
    Workload workload;
    TransactionClass one;
    one.share = 1;
    one.outside_ns = 100;
    one.body_ns = 1000;
    one.read_words = 10;
    one.written_words = 6;  // a log of 104 bytes: two lines
    workload.classes.push_back(one);
    return workload;
}

Machine plain_machine()
{
    Machine machine;
    machine.cores_per_socket = 64;
    machine.compute_factor = 1;
    machine.timestamp_ns = 10;
    machine.compare_and_swap_ns = 7;
    machine.log_word_ns = 2;
    machine.flush_first_line_ns = 90;
    machine.flush_next_line_ns = 30;
    machine.flush_again_ns = 400;
    machine.line_transfer_ns = 60;
    machine.persistent_write_gb_per_s = 1000;
    machine.has_hardware_transactions = 1;
    machine.htm_begin_ns = 20;
    machine.htm_commit_ns = 15;
    machine.htm_capacity_lines = 512;
    machine.htm_attempts = 10;
    machine.stm_begin_ns = 30;
    machine.stm_read_ns = 5;
    machine.stm_write_ns = 9;
    machine.stm_validate_read_ns = 1;
    machine.stm_commit_write_ns = 3;
    return machine;
}

TEST(CommitModel, ConservesAttemptsInEverySystem)
{
    const Machine machine = paper_machine();
    for (const char* const workload : {"vacation_low", "kmeans_vlow", "tpcc"}) {
        for (const ProtocolKind& kind : all_protocols()) {
            const RunResult result = run_of(kind.name, machine, workload_named(workload), 24);
            std::uint64_t aborted = 0;
            for (const std::uint64_t one : result.whole.aborted) {
                aborted += one;
            }
            EXPECT_EQ(result.whole.attempts, result.whole.speculated + aborted + result.unfinished) << kind.name << " " << workload;
            EXPECT_EQ(result.whole.committed, 3000U) << kind.name << " " << workload;
        }
    }
}

TEST(CommitModel, AccountsForAllTimeOfAllThreads)
{
    const Machine machine = paper_machine();
    const Workload workload = workload_named("tpcc");
    for (const ProtocolKind& kind : all_protocols()) {
        const RunResult result = run_of(kind.name, machine, workload, 8, 1, 20'000);
        double sum_ns = 0;
        for (const double one : result.total.time_ns) {
            sum_ns += one;
        }
        EXPECT_NEAR(sum_ns / (8 * result.wall_ns), 1, 0.01) << kind.name;
    }
}

TEST(CommitModel, OneThreadTakesTheSumOfItsCosts)
{
    const double execution_ns = 100 + 10 + 20 + 1000 + 6 * 2 + 15;
    const double log_flush_ns = 90 + 30;
    const auto time_ns = [](std::string_view system) { return 1e9 / rate_of(system, plain_machine(), plain_workload(), 1); };
    EXPECT_NEAR(time_ns("SPHT-NL"), execution_ns + log_flush_ns + 7 + 400, 1e-3);
    EXPECT_NEAR(time_ns("NV-HTM"), execution_ns + log_flush_ns + 400, 1e-3);
    EXPECT_NEAR(time_ns("PSTM"), 100 + 30 + 1000 + 10 * 5 + 6 * (9 + 2) + 7 + 10 * 1 + log_flush_ns + 6 * 3, 1e-3);
}

TEST(CommitModel, DearerCostsNeverMakeASystemFaster)
{
    const Workload workload = workload_named("vacation_low");
    for (const char* const change : {"flush_again_ns=2000", "flush_first_line_ns=1000", "line_transfer_ns=700", "compute_factor=2",
                                     "persistent_write_gb_per_s=0.2", "htm_capacity_lines=128"}) {
        Machine dearer = paper_machine();
        change_machine(dearer, change);
        for (const char* const system : {"SPHT-NL", "NV-HTM", "cc-HTM", "Crafty"}) {
            // Random numbers fall differently: two per cent are not a difference.
            EXPECT_LE(rate_of(system, dearer, workload, 16), 1.02 * rate_of(system, paper_machine(), workload, 16)) << system << change;
        }
    }
}

TEST(CommitModel, MoreUnitsMeanFewerConflicts)
{
    Workload crowded = workload_named("vacation_low");
    crowded.areas.front().units /= 20;
    const Workload roomy = workload_named("vacation_low");
    for (const char* const system : {"SPHT-NL", "PSTM"}) {
        const RunResult many = run_of(system, paper_machine(), crowded, 16);
        const RunResult few = run_of(system, paper_machine(), roomy, 16);
        EXPECT_GT(many.abort_rate(), few.abort_rate()) << system;
        EXPECT_LT(many.transactions_per_s, few.transactions_per_s) << system;
    }
}

TEST(CommitModel, SequentialMarkersBoundNvHtmAndNotSpht)
{
    const Machine machine = plain_machine();
    const double markers_per_s = 1e9 / (machine.flush_again_ns + machine.line_transfer_ns);
    EXPECT_LE(rate_of("NV-HTM", machine, plain_workload(), 32), 1.01 * markers_per_s);
    EXPECT_GE(rate_of("NV-HTM", machine, plain_workload(), 32), 0.9 * markers_per_s);
    EXPECT_GT(rate_of("SPHT-NL", machine, plain_workload(), 32), 3 * markers_per_s);
    EXPECT_LE(rate_of("NV-HTM", machine, plain_workload(), 64), 1.02 * rate_of("NV-HTM", machine, plain_workload(), 32));
}

TEST(CommitModel, AClockInTransactionsAbortsThem)
{
    const RunResult dude = run_of("DudeTM", plain_machine(), plain_workload(), 16);
    EXPECT_GT(dude.whole.aborted[static_cast<std::size_t>(Abort::clock)], 0U);
    const RunResult spht = run_of("SPHT-NL", plain_machine(), plain_workload(), 16);
    EXPECT_EQ(spht.aborted(), 0U);
}

TEST(CommitModel, ATransactionThatNeverFitsRunsUnderTheLock)
{
    Workload large = plain_workload();
    large.classes.front().footprint_lines = 100'000;
    const RunResult result = run_of("SPHT-NL", plain_machine(), large, 4);
    EXPECT_EQ(result.whole.speculated, 0U);
    EXPECT_GE(result.whole.fallbacks, result.whole.committed);
    EXPECT_LE(result.transactions_per_s, 1e9 / 1012);
}

TEST(CommitModel, EqualSeedsGiveEqualResults)
{
    for (const ProtocolKind& kind : all_protocols()) {
        const Workload workload = workload_named("kmeans_vlow");
        const RunResult first = run_of(kind.name, paper_machine(), workload, 12, 5);
        const RunResult again = run_of(kind.name, paper_machine(), workload, 12, 5);
        const RunResult other = run_of(kind.name, paper_machine(), workload, 12, 6);
        EXPECT_EQ(first.transactions_per_s, again.transactions_per_s) << kind.name;
        EXPECT_EQ(first.whole.attempts, again.whole.attempts) << kind.name;
        EXPECT_NE(first.transactions_per_s, other.transactions_per_s) << kind.name;
    }
}

TEST(CommitModel, ReadsEveryDescriptionThatItComesWith)
{
    int found = 0;
    for (const auto& file : std::filesystem::directory_iterator(descriptions / "machines")) {
        EXPECT_EQ(read_machine(file.path()).name, file.path().stem());
        ++found;
    }
    for (const auto& file : std::filesystem::directory_iterator(descriptions / "workloads")) {
        EXPECT_EQ(read_workload(file.path()).name, file.path().stem());
        ++found;
    }
    EXPECT_GE(found, 7);
}

TEST(CommitModel, RefusesACostThatItDoesNotKnow)
{
    Machine machine = paper_machine();
    change_machine(machine, "flush_again_ns=12.5");
    EXPECT_EQ(machine.flush_again_ns, 12.5);
    for (const char* const word :
         {"flush_agin_ns=1", "flush_again_ns", "flush_again_ns=", "flush_again_ns=-1", "flush_again_ns=1x", "sockets=0"}) {
        EXPECT_THROW(change_machine(machine, word), std::runtime_error) << word;
    }
}

TEST(CommitModel, RefusesJsonThatIsNotWhole)
{
    EXPECT_EQ(parse_json(" {\"a\": [1, -2.5e1, \"x\\\"y\"]} ").member("a").array("a").size(), 3U);
    for (const char* const text :
         {"", "{", "{\"a\":}", "{\"a\":1,}", "[1 2]", "[1]x", "\"a", "\"\\n\"", "{\"a\":1,\"a\":2}", "nan", "1e999", "{1:2}"}) {
        EXPECT_THROW(static_cast<void>(parse_json(text)), std::runtime_error) << text;
    }
    EXPECT_THROW(static_cast<void>(parse_json(std::string(100, '['))), std::runtime_error);
    EXPECT_THROW(static_cast<void>(parse_json("{\"a\": 1}").member("b")), std::runtime_error);
    EXPECT_THROW(static_cast<void>(parse_json("{\"a\": 1}").member("a").text("a")), std::runtime_error);
}

}  // namespace
}  // namespace bench::model

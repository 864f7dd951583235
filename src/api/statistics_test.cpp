// Invariants: the page can be read by another process while it is written; nothing a reader is
// given can make it fault; quantiles are within an eighth of the truth.

#include "api/statistics.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "runtime/histogram.hpp"
#include "support/temporary_directory.hpp"

namespace stillpoint {
namespace {

TEST(Histogram, PutsEveryValueAtMostAnEighthBelowItsBucketsEnd)
{
    for (std::uint64_t value = 0; value < 5'000'000; value += 1 + value / 7) {
        LogHistogram histogram;
        histogram.record(value);
        const auto p50 = histogram.quantile(500);
        EXPECT_GE(p50, value);
        EXPECT_LE(p50, value + value / 8 + 1);
    }
    LogHistogram top;
    top.record(UINT64_MAX);
    EXPECT_EQ(top.quantile(500), UINT64_MAX);
}

TEST(Histogram, FindsTheMedianAndTheTail)
{
    LogHistogram histogram;
    EXPECT_EQ(histogram.quantile(500), 0u);
    for (int i = 0; i < 980; ++i) {
        histogram.record(1000);
    }
    for (int i = 0; i < 20; ++i) {
        histogram.record(1'000'000);
    }
    EXPECT_LE(histogram.quantile(500), 1125u);
    EXPECT_GE(histogram.quantile(990), 1'000'000u);
}

TEST(Statistics, CanBeReadByAnotherProcessWhileItIsWritten)
{
    ASSERT_TRUE(statistics_open("/nonexistent/a.pool", {1, 2, 3}, "an-engine", statistics_table()));
    statistics().epoch = 41;
    const pid_t writer = getpid();
    const pid_t reader = fork();
    if (reader == 0) {
        auto view = open_statistics(writer);
        if (!view || view->pool_path() != "/nonexistent/a.pool") {
            _exit(1);
        }
        _exit((*view)->epoch.load() == 41 && (*view)->pool_uuid[2] == 3 ? 0 : 2);
    }
    int status = -1;
    ASSERT_EQ(waitpid(reader, &status, 0), reader);
    EXPECT_EQ(status, 0);
    auto own = open_statistics(writer);
    ASSERT_TRUE(own);
    statistics().epoch = 42;
    EXPECT_EQ((*own)->epoch.load(), 42u);
    EXPECT_EQ((*own)->process_id, static_cast<std::uint64_t>(writer));
    EXPECT_FALSE(own->program_name().empty());
    statistics_close();
    const auto closed = open_statistics(writer);
    ASSERT_FALSE(closed);
    EXPECT_EQ(closed.error().code, SP_E_NOT_OPEN);
}

TEST(Statistics, OfSeveralPoolsAreFoundByThePoolsFile)
{
    const test::TemporaryDirectory folder;
    const std::array<std::string, 2> paths{folder.file("one.pool"), folder.file("other.pool")};
    for (unsigned number = 0; number < paths.size(); ++number) {
        std::ofstream(paths[number]) << number;
        const StatisticsScope own(number);
        ASSERT_TRUE(statistics_open(paths[number], {}, "an-engine", statistics_table()));
        statistics().epoch = 10 + number;
        record_stop_time(1000 * (number + 1));
    }
    for (unsigned number = 0; number < paths.size(); ++number) {
        auto view = open_statistics(getpid(), paths[number]);
        ASSERT_TRUE(view) << view.error().text();
        EXPECT_EQ(view->pool_path(), std::filesystem::canonical(paths[number]).string());
        EXPECT_EQ((*view)->epoch.load(), 10 + number);
        EXPECT_EQ((*view)->stop_ns_max.load(), 1000 * (number + 1));
        EXPECT_EQ(&statistics_of(number), [&] {
            const StatisticsScope own(number);
            return &statistics();
        }());
    }
    std::ofstream(folder.file("third.pool")) << 3;
    const auto none = open_statistics(getpid(), folder.file("third.pool"));
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, SP_E_NOT_OPEN);
    for (unsigned number = 0; number < paths.size(); ++number) {
        const StatisticsScope own(number);
        statistics_close();
    }
}

TEST(Statistics, KeepStopTimesMaximumAndQuantiles)
{
    ASSERT_TRUE(statistics_open("a.pool", {}, "an-engine", statistics_table()));
    for (std::uint64_t i = 1; i <= 100; ++i) {
        record_stop_time(i * 1000);
    }
    EXPECT_EQ(statistics().stop_ns_max, 100'000u);
    EXPECT_EQ(statistics().stop_ns_last, 100'000u);
    EXPECT_NEAR(static_cast<double>(statistics().stop_ns_p50), 50'000, 7'000);
    EXPECT_NEAR(static_cast<double>(statistics().stop_ns_p99), 99'000, 13'000);
    statistics_close();
}

TEST(Statistics, KeepPercentilesAtMostAsLargeAsTheMaximum)
{
    for (std::uint64_t value = 1; value < 100'000'000; value = value * 5 / 3 + 1) {
        ASSERT_TRUE(statistics_open("a.pool", {}, "an-engine", statistics_table()));
        for (int i = 0; i < 3; ++i) {
            record_stop_time(value);
        }
        EXPECT_LE(statistics().stop_ns_p99, statistics().stop_ns_max) << value;
        EXPECT_LE(statistics().stop_ns_p50, statistics().stop_ns_p99) << value;
        EXPECT_EQ(statistics().stop_ns_max, value);
        statistics_close();
    }
}

TEST(Statistics, AreReadSoThatTheyDoNotContradictEachOther)
{
    ASSERT_TRUE(statistics_open("a.pool", {}, "an-engine", statistics_table()));
    std::atomic<bool> done{false};
    std::thread writer([&] {
        for (std::uint64_t i = 1; i < 3'000 || !done; ++i) {
            record_stop_time(i * 1'000);
            statistics().epoch.store(i, std::memory_order_relaxed);
            statistics().durable_epoch.store(i, std::memory_order_release);
        }
    });
    const auto row_of = [](std::string_view name) {
        const auto rows = statistic_rows();
        return static_cast<std::size_t>(std::ranges::find(rows, name, &StatisticRow::name) - rows.begin());
    };
    for (int i = 0; i < 20'000; ++i) {
        const auto values = read_statistics(statistics());
        ASSERT_LE(values[row_of("durable_epoch")], values[row_of("epoch")]);
        ASSERT_LE(values[row_of("stop_ns_p50")], values[row_of("stop_ns_p99")]);
        ASSERT_LE(values[row_of("stop_ns_p99")], values[row_of("stop_ns_max")]);
        ASSERT_LE(values[row_of("stop_ns_last")], values[row_of("stop_ns_max")]);
    }
    done = true;
    writer.join();
    statistics_close();
}

TEST(Statistics, HaveWordsThatOnlyTheirOwnEngineWrites)
{
    const auto rows = statistic_rows();
    const auto own = std::ranges::find_if(rows, [](const StatisticRow& row) { return !row.engine.empty(); });
    ASSERT_NE(own, rows.end());
    ASSERT_TRUE(statistics_open("a.pool", {}, own->engine, statistics_table()));
    statistics().engine_words[own->engine_word] = 9;
    for (const StatisticRow& row : rows) {
        EXPECT_EQ(read_statistic(statistics(), row), &row == &*own ? 9u : 0u) << row.name;
    }
    ASSERT_TRUE(statistics_open("a.pool", {}, "an-engine", statistics_table()));
    statistics().engine_words[own->engine_word] = 9;
    EXPECT_EQ(read_statistic(statistics(), *own), 0u) << "the words are another engine's";
    statistics_close();
}

TEST(Statistics, AreNotFoundInAProcessWithoutAPoolNorInNoProcess)
{
    EXPECT_FALSE(open_statistics(getpid()));
    EXPECT_FALSE(open_statistics(-5));
}

TEST(Statistics, RowsNameEveryFieldOnce)
{
    statistics().threads = 7;
    for (const auto& row : statistic_rows()) {
        if (row.name == "threads") {
            EXPECT_EQ(read_statistic(statistics(), row), 7u);
        }
    }
    statistics().threads = 0;
    EXPECT_EQ(statistic_rows().front().name, "epoch");
}

}  // namespace
}  // namespace stillpoint

// The instruments of the benchmark: histograms, distributions, and the windows of records that are kept.
//
// Invariants:
// - A latency is known within a thousandth; buckets have no gap and no overlap.
// - Zipf's frequencies are those of its definition for the first numbers and for shares of the whole range.
// - Of a watched transaction each attempt is counted, and its time belongs to one phase; a new slice begins with nothing.
// - The records of a window are found again after a restart, wherever in the ring they lie.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "../../bench/harness/clock.hpp"
#include "../../bench/harness/latency_histogram.hpp"
#include "../../bench/harness/random.hpp"
#include "../../bench/harness/zipf.hpp"
#include "../../bench/transactions/transaction_phases.hpp"
#include "../../bench/workloads/record_windows.hpp"

namespace bench {
namespace {

std::vector<std::pair<std::uint64_t, std::uint64_t>> buckets_of(const LatencyHistogram& histogram)
{
    std::vector<std::pair<std::uint64_t, std::uint64_t>> buckets;
    histogram.for_each([&](std::uint64_t largest_ns, std::uint64_t count) { buckets.emplace_back(largest_ns, count); });
    return buckets;
}

TEST(LatencyHistogram, HasBucketsWithoutGapOrOverlap)
{
    const std::size_t last = LatencyHistogram::index_of(UINT64_MAX);
    for (std::size_t i = 0; i < last; ++i) {
        ASSERT_EQ(LatencyHistogram::index_of(LatencyHistogram::largest_of(i)), i);
        ASSERT_EQ(LatencyHistogram::index_of(LatencyHistogram::largest_of(i) + 1), i + 1);
    }
    EXPECT_EQ(LatencyHistogram::largest_of(last), (std::uint64_t{1} << 40) - 1);
}

TEST(LatencyHistogram, KnowsEachValueWithinAThousandth)
{
    Random random;
    for (unsigned i = 0; i < 100'000; ++i) {
        const std::uint64_t value = random.next() >> (24 + random.below(38));
        const std::uint64_t shown = LatencyHistogram::largest_of(LatencyHistogram::index_of(value));
        ASSERT_GE(shown, value);
        ASSERT_LE(static_cast<double>(shown - value), static_cast<double>(value) / 1000);
    }
}

TEST(LatencyHistogram, HasThePercentilesOfItsValuesWithinAThousandth)
{
    LatencyHistogram halves[2];
    std::vector<std::uint64_t> values;
    Random random;
    for (unsigned i = 0; i < 100'000; ++i) {
        values.push_back(100 + (random.next() >> (40 + random.below(20))));
        halves[i % 2].record(values.back());
    }
    halves[0].add(halves[1]);
    const auto buckets = buckets_of(halves[0]);
    std::sort(values.begin(), values.end());
    for (const double rank : {0.5, 0.99, 0.999, 1.0}) {
        const auto wanted = static_cast<std::uint64_t>(rank * static_cast<double>(values.size()));
        std::uint64_t seen = 0;
        const auto found = std::find_if(buckets.begin(), buckets.end(),
                                        [&](const auto& bucket) { return (seen += bucket.second) >= wanted; });
        ASSERT_NE(found, buckets.end());
        const auto exact = static_cast<double>(values[wanted - 1]);
        EXPECT_LE(std::abs(static_cast<double>(found->first) - exact), exact / 1000);
    }
}

/// How often each number comes, in parts of all.
std::vector<double> frequencies(const Zipf& zipf, std::uint64_t count)
{
    constexpr unsigned draws = 2'000'000;
    std::vector<double> found(count);
    Random random;
    for (unsigned i = 0; i < draws; ++i) {
        found[zipf.next(random)] += 1.0 / draws;
    }
    return found;
}

/// The share of the numbers from `first` to `last`, by the definition.
double share(std::uint64_t first, std::uint64_t last, std::uint64_t count)
{
    double wanted = 0;
    double all = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        const double weight = std::pow(static_cast<double>(i + 1), -0.99);
        all += weight;
        wanted += i >= first && i <= last ? weight : 0;
    }
    return wanted / all;
}

TEST(Zipf, HasTheFrequenciesOfItsDefinition)
{
    for (const std::uint64_t count : {std::uint64_t{1000}, std::uint64_t{100'000}}) {
        const std::vector<double> found = frequencies(Zipf(count), count);
        for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{1}}) {
            EXPECT_NEAR(found[first], share(first, first, count), 0.02 * found[first]);
        }
        // Gray's curve is exact for the first two only, and right on the whole after them.
        for (const std::uint64_t last : {std::uint64_t{9}, std::uint64_t{99}, count / 2}) {
            double sum = 0;
            for (std::uint64_t i = 0; i <= last; ++i) {
                sum += found[i];
            }
            EXPECT_NEAR(sum, share(0, last, count), 0.05 * sum) << "of the first " << last + 1 << " of " << count;
        }
    }
}

TEST(Zipf, SpreadsThePopularNumbersAndKeepsTheirFrequencies)
{
    constexpr std::uint64_t count = 10'000;
    const Zipf zipf(count);
    std::vector<double> found(count);
    Random random;
    constexpr unsigned draws = 500'000;
    for (unsigned i = 0; i < draws; ++i) {
        const std::uint64_t number = zipf.next_scrambled(random);
        ASSERT_LT(number, count);
        found[number] += 1.0 / draws;
    }
    double sum_of_first_tenth = 0;
    for (std::uint64_t i = 0; i < count / 10; ++i) {
        sum_of_first_tenth += found[i];
    }
    std::sort(found.rbegin(), found.rend());
    EXPECT_NEAR(found[0], share(0, 0, count), 0.03 * found[0]);
    EXPECT_LT(sum_of_first_tenth, 0.5);  // unscrambled: three quarters
}

/// The numbers of the records that one life has left, `extra` threads of it with one record too many.
std::set<std::uint64_t> left_by(RecordWindows& windows, std::uint64_t insertions, unsigned extra)
{
    std::set<std::uint64_t> numbers;
    for (unsigned thread = 0; thread < windows.threads(); ++thread) {
        for (std::uint64_t i = 0; i < windows.length() + insertions + thread; ++i) {
            EXPECT_TRUE(numbers.insert(windows.number_of(thread, windows.end(thread))).second);
            windows.has_inserted(thread);
            if (windows.is_over(thread)) {
                EXPECT_EQ(numbers.erase(windows.number_of(thread, windows.first(thread))), 1u);
                windows.removes(thread);
            }
        }
        if (thread < extra) {
            numbers.insert(windows.number_of(thread, windows.end(thread)));
        }
    }
    return numbers;
}

/// A transaction whose body runs so many times.
void watched_transaction(unsigned attempts)
{
    TransactionPhases::Watched watched(2);
    for (unsigned i = 0; i < attempts; ++i) {
        const TransactionPhases::Watched::Attempt attempt(watched);
        const std::uint64_t began_ns = monotonic_ns();
        while (monotonic_ns() - began_ns < 100'000) {
        }
    }
}

TEST(TransactionPhases, CountAttemptsAndThoseThatRanAlone)
{
    TransactionPhases::begin();
    watched_transaction(1);
    std::thread([] { watched_transaction(2); }).join();
    std::thread([] { watched_transaction(3); }).join();
    const PhaseSums sums = TransactionPhases::end();
    EXPECT_EQ(sums.transactions, 3);
    EXPECT_EQ(sums.attempts, 6);
    EXPECT_EQ(sums.run_alone, 1);
    EXPECT_GE(sums.committed_ns, 200'000);
    EXPECT_GE(sums.aborted_ns, 300'000);
    EXPECT_GE(sums.alone_ns, 100'000);
    EXPECT_FALSE(TransactionPhases::are_watched());
}

TEST(TransactionPhases, OfASliceBeginWithNothing)
{
    TransactionPhases::begin();
    watched_transaction(3);
    EXPECT_EQ(TransactionPhases::end().transactions, 1);
    TransactionPhases::begin();
    EXPECT_EQ(TransactionPhases::end().transactions, 0);
}

TEST(RecordWindows, AreFoundAgainWhereverTheyLie)
{
    for (const std::uint64_t records : {0u, 4u, 6u, 20u, 64u}) {
        for (std::uint64_t insertions = 0; insertions < 3 * records + 9; ++insertions) {
            for (const unsigned extra : {0u, 1u, 2u}) {
                RecordWindows before(records, 2);
                const std::set<std::uint64_t> numbers = left_by(before, insertions, extra);
                RecordWindows after(records, 2);
                after.find_again([&](std::uint64_t number) { return numbers.contains(number); });
                std::set<std::uint64_t> found;
                for (unsigned thread = 0; thread < after.threads(); ++thread) {
                    ASSERT_EQ(after.end(thread) - after.first(thread), after.length() + (thread < extra ? 1 : 0));
                    for (std::uint64_t record = after.first(thread); record < after.end(thread); ++record) {
                        found.insert(after.number_of(thread, record));
                    }
                }
                ASSERT_EQ(found, numbers) << records << " records, " << insertions << " insertions";
            }
        }
    }
}

}  // namespace
}  // namespace bench

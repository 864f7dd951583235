// Threads that commit leave a chain with every record once, in the order of timestamps, whatever is rolled back in between; and a replayer
// beside them finds the chain whole.

#include "logs/commit_links.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <thread>

#include "logs/linked_range.hpp"
#include "logs/replay_order.hpp"
#include "support/fake_medium.hpp"

namespace stillpoint::logs {
namespace {

class Links : public ::testing::TestWithParam<LinkDirection> {
protected:
    /// A thread of transactions; number 0 is the library's own, whose records no thread waits for.
    struct Committer {
        unsigned number = 0;
        RedoLog log;
        RecordBuilder builder;
        LinkSearch search;
        std::mt19937_64 random;
        std::vector<RecordRef> records;
    };

    void set_up(std::uint32_t chunks, unsigned threads)
    {
        ASSERT_TRUE(space_.reserve(chunks, nullptr));
        ASSERT_TRUE(order_.reserve());
        ASSERT_TRUE(links_.reserve(order_, space_, medium_, GetParam(), chunks));
        space_.add(0, chunks * chunk_pages);
        for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
            space_.give_back(chunk);
        }
        order_.set_slots(threads);
        committers_ = std::vector<Committer>(threads);
        for (unsigned number = 0; number < threads; ++number) {
            Committer& committer = committers_[number];
            committer.number = number;
            committer.random.seed(number + 1);
            ASSERT_TRUE(committer.log.init(space_, medium_, number, 1));
            ASSERT_TRUE(committer.builder.reserve(std::uint64_t{1} << 16));
            ASSERT_TRUE(committer.search.reserve());
        }
    }

    Timestamp now() { return clock_.fetch_add(1, std::memory_order_seq_cst) + 1; }

    void commit(Committer& committer, std::uint64_t words)
    {
        CommitOrder::Slot& slot = order_.slot(committer.number);
        const auto kind = committer.random() % 8;
        if (kind == 0) {  // Volatile memory alone.
            links_.announce(slot, committer.search, 0, now());
            std::this_thread::yield();
            links_.withdraw(slot);
            return;
        }
        committer.builder.clear();
        for (std::uint64_t word = 0; word < words; ++word) {
            committer.builder.add_word(word, word);
        }
        while (committer.log.prepare(committer.builder.words()) != RedoLog::Room::ready) {
            std::this_thread::yield();
        }
        links_.announce(slot, committer.search, committer.log.next_position(), now());
        if (kind == 1) {  // A conflict.
            committer.log.cancel();
            links_.withdraw(slot);
            links_.withdraw(slot);
            return;
        }
        const Timestamp timestamp = now();
        links_.note_timestamp(committer.search, timestamp);
        if (committer.number != 0) {
            CommitOrder::settle(slot, timestamp);
        }
        if (kind == 2) {
            std::this_thread::yield();
        }
        const Position position = committer.log.append(committer.builder, timestamp);
        committer.records.push_back({timestamp, position});
        links_.scan_others(slot, committer.search);
        CommitOrder::persisted(slot, timestamp);
        static_cast<void>(order_.await_preceding(&slot, timestamp));
        order_.raise_durable(timestamp);
        if (kind == 3) {
            std::this_thread::yield();
        }
        links_.finish(slot, committer.search, true);
    }

    void run_threads(unsigned count, unsigned transactions, std::uint64_t words_max)
    {
        std::vector<std::thread> threads;
        for (Committer& committer : std::span(committers_).first(count)) {
            threads.emplace_back([&, transactions, words_max] {
                for (unsigned i = 0; i < transactions; ++i) {
                    commit(committer, 1 + committer.random() % words_max);
                }
            });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
    }

    std::vector<RecordRef> all_records() const
    {
        std::vector<RecordRef> records;
        for (const Committer& committer : committers_) {
            records.insert(records.end(), committer.records.begin(), committer.records.end());
        }
        std::sort(records.begin(), records.end(), [](const RecordRef& a, const RecordRef& b) { return a.timestamp < b.timestamp; });
        return records;
    }

    LogBytes bytes() const { return {space_.bytes().data(), static_cast<std::uint32_t>(space_.bytes().size())}; }

    LinkedRecords range(Timestamp after, Timestamp limit)
    {
        LinkedRecords found{GetParam(), {}, {}, 0};
        for (Committer& committer : committers_) {
            add_records(committer.log, space_, after, limit, found);
        }
        return found;
    }

    testing::FakeMedium medium_{std::make_shared<testing::FakeDisk>()};
    ChunkSpace space_;
    CommitOrder order_;
    CommitLinks links_;
    std::atomic<Timestamp> clock_{0};  ///< never gives one timestamp twice
    std::vector<Committer> committers_;
};

INSTANTIATE_TEST_SUITE_P(Directions, Links, ::testing::Values(LinkDirection::forward, LinkDirection::backward),
                         [](const auto& direction) { return direction.param == LinkDirection::forward ? "Forward" : "Backward"; });

TEST_P(Links, HaveEveryRecordOnceInOrder)
{
    set_up(256, 4);
    for (const unsigned threads : {1U, 2U, 4U, 3U}) {
        run_threads(threads, 8'000, 8);
        const std::vector<RecordRef> expected = all_records();
        std::vector<RecordRef> found(expected.size());
        EXPECT_TRUE(follow_links(bytes(), GetParam(), expected.front(), expected.back(), found));
        EXPECT_EQ(found, expected) << threads << " threads";
    }
}

TEST_P(Links, TellOfRecordsAloneIfMostTransactionsAreRolledBack)
{
    set_up(16, 2);
    CommitOrder::Slot& first = order_.slot(0);
    CommitOrder::Slot& second = order_.slot(1);
    // The second thread has begun when the first looks around, and is rolled back; its next transaction has the same place in the log.
    Committer& one = committers_[0];
    Committer& two = committers_[1];
    for (Committer* const committer : {&one, &two}) {
        committer->builder.clear();
        committer->builder.add_word(1, 1);
        ASSERT_EQ(committer->log.prepare(committer->builder.words()), RedoLog::Room::ready);
    }
    const Position place = two.log.next_position();
    const auto append = [&](Committer& committer, CommitOrder::Slot& slot, Timestamp timestamp) {
        links_.note_timestamp(committer.search, timestamp);
        CommitOrder::settle(slot, timestamp);
        committer.log.append(committer.builder, timestamp);
    };
    links_.announce(first, one.search, one.log.next_position(), 1);
    append(one, first, 2);
    links_.scan_others(first, one.search);
    CommitOrder::persisted(first, 2);
    links_.finish(first, one.search, true);
    ASSERT_EQ(one.log.prepare(one.builder.words()), RedoLog::Room::ready);
    const Position later = one.log.next_position();
    links_.announce(second, two.search, place, 3);
    links_.announce(first, one.search, later, 4);
    append(one, first, 5);
    links_.scan_others(first, one.search);
    CommitOrder::persisted(first, 5);
    links_.withdraw(second);
    EXPECT_EQ(second.stamp.load(), 1U);
    links_.announce(second, two.search, place, 6);
    append(two, second, 7);
    links_.finish(first, one.search, true);
    links_.scan_others(second, two.search);
    CommitOrder::persisted(second, 7);
    links_.finish(second, two.search, true);

    std::vector<RecordRef> found(3);
    ASSERT_TRUE(follow_links(bytes(), GetParam(), {2, later - cache_line_bytes}, {7, place}, found));
    EXPECT_EQ(found[1], (RecordRef{5, later}));
}

TEST_P(Links, AreWholeForAReplayerThatTakesChunksAway)
{
    set_up(16, 4);
    std::atomic<bool> finished{false};
    std::uint64_t followed = 0;
    unsigned wrong = 0;
    std::thread replayer([&] {
        Timestamp replayed = 0;
        Timestamp newest = 0;
        std::vector<RecordRef> ordered;
        for (bool last = false; !last;) {
            last = finished.load(std::memory_order_acquire);
            const Timestamp limit = order_.durable();
            links_.await_links(limit);
            const LinkedRecords records = range(replayed, limit);
            ordered.resize(records.count);
            if (records.count != 0) {
                wrong += follow_links(bytes(), GetParam(), records.oldest, records.newest, ordered) ? 0U : 1U;
                newest = records.newest.timestamp;
                followed += records.count;
            }
            replayed = limit;
            for (Committer& committer : committers_) {
                committer.log.release_up_to(newest - (newest != 0 ? 1 : 0), space_.free_chunks() < 8);
            }
        }
    });
    run_threads(4, 6'000, 600);
    finished.store(true, std::memory_order_release);
    replayer.join();
    EXPECT_EQ(wrong, 0U);
    EXPECT_EQ(followed, all_records().size());
}

TEST(LinksOff, DoNotTouchTheLogs)
{
    CommitOrder order;
    ChunkSpace space;
    testing::FakeMedium medium(std::make_shared<testing::FakeDisk>());
    CommitLinks links;
    ASSERT_TRUE(order.reserve());
    ASSERT_TRUE(links.reserve(order, space, medium, std::nullopt, 16));
    LinkSearch search;
    CommitOrder::Slot& slot = order.slot(0);
    links.announce(slot, search, 64, 5);
    EXPECT_EQ(slot.stamp.load(), 5U << 1);
    links.withdraw(slot);
    EXPECT_EQ(slot.stamp.load(), 5U << 1 | 1);
    links.await_links(timestamp_max);
}

}  // namespace
}  // namespace stillpoint::logs

// Whatever the order of replay and the number of replayers, memory becomes what running the transactions one by one makes of it.

#include "logs/replayer.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <set>

#include "logs/round_size.hpp"
#include "support/redo_logs.hpp"
#include "support/temporary_directory.hpp"

namespace stillpoint::logs {
namespace {

constexpr std::uint64_t image_pages = 24;
constexpr std::uint64_t page_words = page_bytes / 8;

using Image = std::vector<std::uint64_t>;

/// The meaning of runs, byte by byte.
void run_on(Image& image, const RecordHeader* record)
{
    const std::uint64_t* const payload = payload_of(record);
    for (std::uint64_t at = 0; at < record->words;) {
        const Run run = decode_run(payload[at]);
        auto* const bytes = reinterpret_cast<std::byte*>(&image[run.word]);
        const auto* const data = reinterpret_cast<const std::byte*>(payload + at + 1);
        for (std::uint64_t i = 0; i < (run.kind == RunKind::bytes ? 8 : run.count * 8); ++i) {
            if (run.kind == RunKind::zeroes) {
                bytes[i] = std::byte{0};
            } else if (run.kind == RunKind::words || (run.count >> i & 1) != 0) {
                bytes[i] = data[i];
            }
        }
        at += 1 + run_data_words(run);
    }
}

class Replay : public ::testing::Test {
protected:
    Replay() : image_(image_pages * page_words), before_(image_.size())
    {
        for (std::uint64_t& word : before_) {
            word = random_();
        }
    }

    std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

    test::Payload random_payload(std::uint64_t pages)
    {
        test::Payload payload;
        for (std::uint64_t runs = below(6); runs != 0; --runs) {
            const std::uint64_t page = below(pages);
            const std::uint64_t first = below(2) != 0 ? below(8) : below(page_words);
            const std::uint64_t room = page_words - first;
            switch (below(4)) {
            case 0: payload.bytes(page * page_words + first, static_cast<std::uint8_t>(1 + below(255)), random_()); break;
            case 1: payload.zeroes(page * page_words + first, 1 + below(std::min<std::uint64_t>(room, 200))); break;
            case 2: payload.words(page * page_words + first, {random_()}); break;
            default: {
                std::vector<std::uint64_t> words(1 + below(std::min<std::uint64_t>(room, 150)));
                for (std::uint64_t& word : words) {
                    word = random_();
                }
                payload.words(page * page_words + first, words);
            }
            }
        }
        return payload;
    }
    void write(unsigned transactions, std::uint64_t pages = image_pages)
    {
        for (unsigned i = 1; i <= transactions; ++i) {
            const std::uint64_t log = below(4);
            const bool has_two = below(5) == 0;
            ordered_.push_back(logs_.add(log, i, random_payload(pages), has_two ? more_parts : 0));
            if (has_two) {
                ordered_.push_back(logs_.add(log, i, random_payload(pages), 1));
            }
        }
    }
    void start(unsigned replayers, bool filter, bool caller = true, const os::NumaNodes& nodes = one_node())
    {
        replayer_.emplace();
        ASSERT_TRUE(replayer_->start(image_pages, {replayers, filter, caller}, nodes));
    }
    static const os::NumaNodes& one_node()
    {
        static const os::NumaNodes nodes = os::NumaNodes::read("/nonexistent");
        return nodes;
    }
    [[nodiscard]] bool replay(std::span<const RecordRef> records)
    {
        const ReplayTarget target{[](void* test, std::uint64_t page) { return static_cast<Replay*>(test)->page(page); }, this};
        asked_.assign(image_pages, 0);
        return replayer_->replay(logs_.bytes(), records, target);
    }
    [[nodiscard]] bool replay_linked(const LinkedRecords& records)
    {
        const ReplayTarget target{[](void* test, std::uint64_t page) { return static_cast<Replay*>(test)->page(page); }, this};
        asked_.assign(image_pages, 0);
        return replayer_->replay_linked(logs_.bytes(), records, target);
    }
    std::byte* page(std::uint64_t page)
    {
        ++asked_[page];
        return page == missing_page_ ? nullptr : reinterpret_cast<std::byte*>(&image_[page * page_words]);
    }
    Image model(std::span<const RecordRef> records)
    {
        Image model = image_;
        for (const RecordRef& record : records) {
            run_on(model, logs_.bytes().record_at(record.position));
        }
        return model;
    }
    std::set<std::uint32_t> pages_of(std::span<const RecordRef> records)
    {
        std::set<std::uint32_t> pages;
        for (const RecordRef& record : records) {
            const RecordHeader* const header = logs_.bytes().record_at(record.position);
            for (std::uint64_t at = 0; at < header->words; at += 1 + run_data_words(decode_run(payload_of(header)[at]))) {
                pages.insert(static_cast<std::uint32_t>(decode_run(payload_of(header)[at]).word / page_words));
            }
        }
        return pages;
    }
    /// Replays rounds of the sequence and compares after each.
    void replay_and_compare(std::size_t round)
    {
        image_ = before_;
        for (std::size_t at = 0; at < ordered_.size(); at += round) {
            const std::span records(ordered_.data() + at, std::min(round, ordered_.size() - at));
            const Image expected = model(records);
            ASSERT_TRUE(replay(records));
            ASSERT_EQ(image_, expected);
            const auto touched = replayer_->pages();
            EXPECT_EQ(std::set(touched.begin(), touched.end()), pages_of(records));
            EXPECT_EQ(touched.size(), pages_of(records).size());
            EXPECT_LE(*std::max_element(asked_.begin(), asked_.end()), 1);
        }
    }

    std::mt19937_64 random_{3};
    test::RedoLogs logs_;
    std::vector<RecordRef> ordered_;
    Image image_;
    Image before_;
    std::vector<int> asked_;
    std::uint64_t missing_page_ = UINT64_MAX;
    std::optional<Replayer> replayer_;
};

TEST_F(Replay, GivesTheSameBytesInEveryOrderWithEveryNumberOfReplayers)
{
    write(3000);
    for (unsigned replayers = 1; replayers <= 4; ++replayers) {
        for (const bool filter : {true, false}) {
            for (const bool caller : {true, false}) {
                SCOPED_TRACE(::testing::Message() << replayers << " replayers, filter " << filter << ", caller " << caller);
                start(replayers, filter, caller);
                replay_and_compare(ordered_.size());
                replay_and_compare(1000);
                replay_and_compare(37);
            }
        }
    }
}

TEST_F(Replay, AlongLinksGivesTheSameBytes)
{
    write(3000);
    image_ = before_;
    const Image expected = model(ordered_);
    for (unsigned replayers = 1; replayers <= 3; ++replayers) {
        for (const LinkDirection direction : {LinkDirection::forward, LinkDirection::backward}) {
            start(replayers, true);
            logs_.link(ordered_, direction == LinkDirection::forward);
            const LinkedRecords records{direction, ordered_.front(), ordered_.back(), ordered_.size()};
            image_ = before_;
            ASSERT_TRUE(replay_linked(records));
            ASSERT_EQ(image_, expected);
            EXPECT_EQ(replayer_->pages().size(), pages_of(ordered_).size());
            for (const std::uint64_t count : {ordered_.size() - 1, ordered_.size() + 1}) {
                EXPECT_FALSE(replay_linked({direction, ordered_.front(), ordered_.back(), count}));
            }
        }
    }
}

TEST_F(Replay, AfterAWrongLinkAReplayOfTheListMakesAllGood)
{
    write(2000);
    for (const LinkDirection direction : {LinkDirection::forward, LinkDirection::backward}) {
        const bool forward = direction == LinkDirection::forward;
        logs_.link(ordered_, forward);
        // One link passes over some records: only the count tells.
        logs_.header_at(ordered_[forward ? 700 : 720]).link = ordered_[forward ? 720 : 700].position | 1;
        start(2, forward);
        image_ = before_;
        const Image expected = model(ordered_);
        EXPECT_FALSE(replay_linked({direction, ordered_.front(), ordered_.back(), ordered_.size()}));
        EXPECT_TRUE(replay(ordered_));
        EXPECT_EQ(image_, expected);
    }
}

TEST_F(Replay, MixesWordsAndBytesAsTheirOrderSays)
{
    // Few words, so that whole ones, parts and zeroes meet often.
    for (unsigned i = 1; i <= 4000; ++i) {
        const std::uint64_t word = below(4);
        test::Payload payload;
        for (std::uint64_t runs = 1 + below(3); runs != 0; --runs) {
            switch (below(8)) {
            case 0: payload.words(word, {random_()}); break;
            case 1: payload.zeroes(word, 1 + below(3)); break;
            default: payload.bytes(word, static_cast<std::uint8_t>(1 + below(255)), random_());
            }
        }
        ordered_.push_back(logs_.add(0, i, payload));
    }
    for (const bool filter : {true, false}) {
        start(1, filter);
        replay_and_compare(ordered_.size());
        replay_and_compare(3);
        replay_and_compare(1);
    }
}

TEST_F(Replay, ASinglePageIsOneReplayersWork)
{
    write(2000, 1);
    start(3, true);
    replay_and_compare(ordered_.size());
}

TEST_F(Replay, APageWithoutBytesFailsTheReplayAndNotTheNext)
{
    write(1000);
    for (const unsigned replayers : {1U, 2U}) {
        start(replayers, true);
        missing_page_ = 3;
        EXPECT_FALSE(replay(ordered_));
        missing_page_ = UINT64_MAX;
        replay_and_compare(ordered_.size());
    }
}

TEST_F(Replay, APageAfterTheImageFails)
{
    ordered_.push_back(logs_.add(0, 1, test::Payload().words(image_pages * page_words, {1})));
    start(1, true);
    EXPECT_FALSE(replay(ordered_));
}

TEST_F(Replay, NoRecordsAndEmptyRecordsTouchNothing)
{
    start(2, true);
    EXPECT_TRUE(replay({}));
    ordered_.push_back(logs_.add(0, 1, test::Payload()));
    EXPECT_TRUE(replay(ordered_));
    EXPECT_TRUE(replayer_->pages().empty());
}

TEST_F(Replay, StartsAgainAfterAStop)
{
    write(1000);
    start(2, true);
    replay_and_compare(ordered_.size());
    replayer_->stop();
    ASSERT_TRUE(replayer_->start(image_pages, {2, true, false}, one_node()));
    replay_and_compare(ordered_.size());
    Replayer other;
    EXPECT_FALSE(other.start(1, {0, true, true}, one_node()));
    EXPECT_FALSE(other.start(1, {Replayer::replayers_max + 1, true, true}, one_node()));
}

TEST_F(Replay, ReplayersRunNearTheNodesInTurn)
{
    const test::TemporaryDirectory folder;
    for (const char* node : {"0", "1"}) {
        std::filesystem::create_directory(folder.file("node") + node);
        std::ofstream(folder.file("node") + node + "/cpulist") << node << '\n';
    }
    std::ofstream(folder.file("online")) << "0-1\n";
    const os::NumaNodes nodes = os::NumaNodes::read(folder.path().c_str());
    ASSERT_EQ(nodes.count(), 2U);
    write(1000);
    start(4, true, false, nodes);
    replay_and_compare(ordered_.size());
}

TEST_F(Replay, ARoundHasWholeTransactionsThatTouchSoManyPages)
{
    write(300);
    RoundSize round;
    ASSERT_TRUE(round.reserve(image_pages));
    for (std::uint64_t pages_max = 1; pages_max <= image_pages; ++pages_max) {
        std::span<const RecordRef> left(ordered_);
        while (!left.empty()) {
            const auto counted = round.count(logs_.bytes(), left, pages_max);
            if (counted.records == 0) {
                const auto first = std::find_if(left.begin(), left.end(),
                                                [&](const RecordRef& record) { return record.timestamp != left[0].timestamp; });
                EXPECT_GT(pages_of({left.begin(), first}).size(), pages_max);
                break;
            }
            EXPECT_EQ(pages_of(left.first(counted.records)).size(), counted.pages);
            EXPECT_LE(counted.pages, pages_max);
            const auto rest = left.subspan(counted.records);
            if (!rest.empty()) {
                EXPECT_NE(rest[0].timestamp, left[counted.records - 1].timestamp);
                const auto next = std::find_if(rest.begin(), rest.end(),
                                               [&](const RecordRef& record) { return record.timestamp != rest[0].timestamp; });
                EXPECT_GT(pages_of({left.begin(), next}).size(), pages_max) << "one more would have fit";
            }
            left = rest;
        }
    }
}

}  // namespace
}  // namespace stillpoint::logs

// The ring of redo records:
//   - records come out whole and in order, also where the ring ends within one;
//   - a record that was added and not applied is not read, and is found by what applies the rest;
//   - a writer waits for room, and gives up when it is told;
//   - marks say what a wait for a record waits for.

#include "engines/nvthreads/processes/redo_ring.hpp"

#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engines/nvthreads/processes/ring_marks.hpp"

namespace stillpoint::nvthreads::processes {

namespace {

std::vector<std::byte> payload_of(std::uint64_t offset, const std::string& bytes)
{
    std::vector<std::byte> payload(sizeof(RunHead) + padded(bytes.size()));
    const RunHead head{offset, bytes.size()};
    std::memcpy(payload.data(), &head, sizeof head);
    std::memcpy(payload.data() + sizeof head, bytes.data(), bytes.size());
    return payload;
}

struct Seen {
    std::uint32_t thread;
    std::uint64_t offset;
    std::string bytes;
    bool operator==(const Seen&) const = default;
};

class Ring : public testing::Test {
protected:
    bool add(std::uint32_t thread, std::uint64_t offset, const std::string& bytes, bool applied = true)
    {
        const auto payload = payload_of(offset, bytes);
        const bool added = ring->add(thread, RecordKind::section_ends, payload.data(), payload.size(), give_up);
        if (added && applied) {
            ring->note_applied();
        }
        return added;
    }
    static void note(std::vector<Seen>& seen, const RecordHead& head, const std::byte* payload)
    {
        visit_runs(payload, head.bytes - sizeof head, [&](std::uint64_t offset, const std::byte* bytes, std::uint64_t size) {
            seen.push_back({head.thread, offset, std::string(reinterpret_cast<const char*>(bytes), size)});
        });
    }
    std::vector<Seen> read()
    {
        std::vector<Seen> seen;
        ring->read([&](const RecordHead& head, const std::byte* payload) { note(seen, head, payload); });
        return seen;
    }

    std::unique_ptr<RedoRing> ring = std::make_unique<RedoRing>();
    SharedWord give_up{0};
};

TEST_F(Ring, GivesRecordsInTheirOrder)
{
    ASSERT_TRUE(add(1, 100, "abc"));
    ASSERT_TRUE(add(2, 200, std::string(1000, 'x')));
    EXPECT_EQ(read(), (std::vector<Seen>{{1, 100, "abc"}, {2, 200, std::string(1000, 'x')}}));
    EXPECT_TRUE(read().empty());
}

TEST_F(Ring, KeepsRecordsWholeAtItsEnd)
{
    const std::string large(RedoRing::record_bytes_max / 3, 'l');
    for (std::uint32_t i = 0; i < 20; ++i) {
        ASSERT_TRUE(add(i, i, large + std::to_string(i)));
        EXPECT_EQ(read(), (std::vector<Seen>{{i, i, large + std::to_string(i)}}));
    }
}

TEST_F(Ring, AppliesTheRestOfAWriterThatDied)
{
    ASSERT_TRUE(add(1, 1, "applied"));
    ASSERT_TRUE(add(2, 2, "not applied", false));
    EXPECT_EQ(read(), (std::vector<Seen>{{1, 1, "applied"}}));
    std::vector<Seen> rest;
    ring->apply_rest([&](const RecordHead& head, const std::byte* payload) { note(rest, head, payload); });
    EXPECT_EQ(rest, (std::vector<Seen>{{2, 2, "not applied"}}));
    EXPECT_EQ(read(), (std::vector<Seen>{{2, 2, "not applied"}}));
}

TEST_F(Ring, AWriterThatFindsNoRoomGivesUpWhenItIsTold)
{
    const std::string large(RedoRing::record_bytes_max - 64, 'l');
    ASSERT_TRUE(add(0, 0, large));
    ASSERT_TRUE(add(0, 0, large));
    give_up.store(1);
    EXPECT_FALSE(add(0, 0, large));
}

TEST_F(Ring, AWriterWaitsForRoom)
{
    constexpr std::uint32_t records = 200;
    const std::string large(RedoRing::record_bytes_max / 4, 'l');
    std::thread writer([&] {
        for (std::uint32_t i = 0; i < records; ++i) {
            ASSERT_TRUE(add(i, i, large));
        }
    });
    std::uint32_t next = 0;
    while (next < records) {
        ring->wait_for_records(1'000'000);
        for (const Seen& seen : read()) {
            ASSERT_EQ(seen.thread, next++);
        }
    }
    writer.join();
}

TEST(RingMarks, AWaitIsForTheFirstMarkAtOrAfterItsPosition)
{
    const auto marks = std::make_unique<RingMarks>();
    EXPECT_EQ(marks->at(5).position, 0U);
    marks->add({16, 3});
    marks->add({64, 3});
    marks->add({80, 9});
    EXPECT_EQ(marks->at(1).position, 16U);
    EXPECT_EQ(marks->at(17).position, 64U);
    EXPECT_EQ(marks->at(80).timestamp, 9U);
    EXPECT_EQ(marks->at(81).position, 80U);
    EXPECT_EQ(marks->reached(2), 0U);
    EXPECT_EQ(marks->reached(3), 64U);
    EXPECT_EQ(marks->reached(10), 80U);
}

TEST(RingMarks, OldOnesAreForgotten)
{
    const auto marks = std::make_unique<RingMarks>();
    for (std::uint64_t i = 1; i <= 3 * RingMarks::kept; ++i) {
        marks->add({16 * i, i});
    }
    EXPECT_EQ(marks->at(1).position, 16 * (2 * RingMarks::kept + 1));
    EXPECT_EQ(marks->reached(RingMarks::kept), 0U);
    EXPECT_EQ(marks->reached(3 * RingMarks::kept - 1), 16 * (3 * RingMarks::kept - 1));
}

}  // namespace

}  // namespace stillpoint::nvthreads::processes

// The client of bench/memcached: what it takes for a right reply, and when it sends.
//
// Invariants:
// - A reply is taken when it is whole, wherever the network cut it, and not before.
// - A value of another key, a mix of two values, another length and an error line are wrong replies.
// - Load sends every key once; the open loop's times do not depend on when it is asked; the closed loop ends in time.

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "../../bench/memcached/protocol.hpp"
#include "../../bench/memcached/schedule.hpp"

namespace bench {
namespace {

constexpr std::size_t value_bytes = 100;

std::string value_of(std::uint32_t key, std::uint64_t version)
{
    std::string value(value_bytes, ' ');
    write_value(value, key, version);
    return value;
}

std::string hit(Protocol protocol, const std::string& value)
{
    return protocol == Protocol::text ? "VALUE key-00000042 0 100\r\n" + value + "\r\nEND\r\n"
                                      : "VA 100 kkey-00000042\r\n" + value + "\r\n";
}

constexpr Request read_42{42, false, 0};
constexpr Request update_42{42, true, 0};

TEST(MemcachedProtocol, TakesAReplyWhenItIsWholeAndNotBefore)
{
    for (const Protocol protocol : {Protocol::text, Protocol::meta}) {
        const std::string whole = hit(protocol, value_of(42, 7));
        const std::string input = whole + whole;
        for (std::size_t count = 0; count < whole.size(); ++count) {
            ASSERT_EQ(parse_reply(input.substr(0, count), protocol, read_42, value_bytes).kind, Reply::Kind::incomplete) << count;
        }
        const Reply reply = parse_reply(input, protocol, read_42, value_bytes);
        EXPECT_EQ(reply.kind, Reply::Kind::hit);
        EXPECT_EQ(reply.bytes, whole.size());
    }
}

TEST(MemcachedProtocol, KnowsMissesAndStores)
{
    EXPECT_EQ(parse_reply("END\r\n", Protocol::text, read_42, value_bytes).kind, Reply::Kind::miss);
    EXPECT_EQ(parse_reply("EN\r\n", Protocol::meta, read_42, value_bytes).kind, Reply::Kind::miss);
    EXPECT_EQ(parse_reply("STORED\r\nSTORED\r\n", Protocol::text, update_42, value_bytes).bytes, 8u);
    EXPECT_EQ(parse_reply("HD\r\n", Protocol::meta, update_42, value_bytes).kind, Reply::Kind::stored);
    EXPECT_EQ(parse_reply("STORED\r", Protocol::text, update_42, value_bytes).kind, Reply::Kind::incomplete);
}

TEST(MemcachedProtocol, SaysWhatIsWrongWithAReply)
{
    const auto fault = [](const std::string& input, const Request& request, std::size_t bytes = value_bytes) {
        const Reply reply = parse_reply(input, Protocol::text, request, bytes);
        EXPECT_EQ(reply.kind, Reply::Kind::wrong) << input;
        return reply.fault;
    };
    EXPECT_NE(fault(hit(Protocol::text, value_of(43, 7)), read_42).find("of another key"), std::string::npos);
    std::string torn = value_of(42, 7);
    torn.replace(60, 40, value_of(42, 8).substr(60));
    EXPECT_NE(fault(hit(Protocol::text, torn), read_42).find("not whole"), std::string::npos);
    EXPECT_NE(fault("SERVER_ERROR out of memory storing object\r\n", update_42).find("out of memory"), std::string::npos);
    fault("VALUE key-00000043 0 100\r\n", read_42);
    fault(hit(Protocol::text, value_of(42, 7)), read_42, value_bytes - 1);
    fault("VALUE key-00000042 0 100\r\n" + value_of(42, 7) + "\r\nEN?\r\n", read_42);
    fault(std::string(2 * line_bytes_max, 'x'), read_42);
    fault("STORED\r\n", read_42);
}

TEST(MemcachedProtocol, WritesRequestsWithTheirValue)
{
    std::string out;
    append_request(out, Protocol::text, read_42, value_bytes, 0);
    append_request(out, Protocol::text, update_42, value_bytes, 7);
    EXPECT_EQ(out, "get key-00000042\r\nset key-00000042 0 0 100\r\n" + value_of(42, 7) + "\r\n");
    out.clear();
    append_request(out, Protocol::meta, read_42, value_bytes, 0);
    append_request(out, Protocol::meta, update_42, value_bytes, 7);
    EXPECT_EQ(out, "mg key-00000042 k v\r\nms key-00000042 100\r\n" + value_of(42, 7) + "\r\n");
}

TEST(MemcachedProtocol, FindsEachByteOfAValueThatWasChanged)
{
    for (const std::size_t bytes : {value_bytes_min, std::size_t{17}, std::size_t{100}}) {
        std::string value(bytes, ' ');
        write_value(value, 42, 7);
        ASSERT_EQ(fault_of_value(value, 42), nullptr);
        for (std::size_t at = value_bytes_min; at < bytes; ++at) {
            std::string damaged = value;
            damaged[at] = static_cast<char>(damaged[at] ^ 1);
            ASSERT_NE(fault_of_value(damaged, 42), nullptr) << at;
        }
    }
}

TEST(MemcachedSchedule, LoadsEachKeyOnce)
{
    const auto schedule = make_schedule({.mode = Mode::load, .keys = 1000}, 0);
    std::set<std::uint32_t> keys;
    while (const auto request = schedule->next(0)) {
        EXPECT_TRUE(request->is_update);
        keys.insert(request->key);
    }
    EXPECT_EQ(keys.size(), 1000u);
    EXPECT_TRUE(schedule->is_over(0));
}

std::vector<std::uint64_t> arrivals(const Traffic& traffic, std::uint64_t step_ns)
{
    const auto schedule = make_schedule(traffic, 0);
    std::vector<std::uint64_t> times;
    for (std::uint64_t now_ns = 0; !schedule->is_over(now_ns); now_ns += step_ns) {
        while (const auto request = schedule->next(now_ns)) {
            EXPECT_LE(request->intended_ns, now_ns);
            times.push_back(request->intended_ns);
        }
    }
    return times;
}

TEST(MemcachedSchedule, HasTimesInTheOpenLoopThatDoNotDependOnWhenItIsAsked)
{
    for (const Arrivals kind : {Arrivals::poisson, Arrivals::constant}) {
        const Traffic traffic{.mode = Mode::open, .keys = 1000, .end_ns = 1'000'000'000, .rate_per_s = 50'000, .arrivals = kind};
        const auto often = arrivals(traffic, 1000);
        EXPECT_EQ(often, arrivals(traffic, 7'000'000));
        EXPECT_NEAR(static_cast<double>(often.size()), 50'000, 5 * std::sqrt(50'000));
        EXPECT_TRUE(std::is_sorted(often.begin(), often.end()));
    }
}

TEST(MemcachedSchedule, CountsInTheOpenLoopWhatWasDueAndInTheClosedOneWhatWasAnsweredInTime)
{
    const Traffic open{.mode = Mode::open, .keys = 1000, .begin_ns = 100, .end_ns = 200, .rate_per_s = 1};
    EXPECT_FALSE(make_schedule(open, 0)->counts({1, false, 99}, 150));
    EXPECT_TRUE(make_schedule(open, 0)->counts({1, false, 199}, 900));
    const Traffic closed{.mode = Mode::closed, .keys = 1000, .begin_ns = 100, .end_ns = 200};
    EXPECT_TRUE(make_schedule(closed, 0)->counts({1, false, 99}, 150));
    EXPECT_FALSE(make_schedule(closed, 0)->counts({1, false, 199}, 200));
    EXPECT_FALSE(make_schedule(closed, 0)->next(200).has_value());
}

TEST(MemcachedSchedule, MixesReadsAndUpdatesAsItIsTold)
{
    const auto schedule = make_schedule({.mode = Mode::closed, .keys = 1000, .read_percent = 90, .end_ns = 1}, 0);
    int updates = 0;
    for (int i = 0; i < 100'000; ++i) {
        const auto request = schedule->next(0);
        updates += request->is_update;
        ASSERT_LT(request->key, 1000u);
    }
    EXPECT_NEAR(updates, 10'000, 500);
}

}  // namespace
}  // namespace bench

// Messages of Ceph's lock class and the head of a pool. Invariants: messages have the bytes that the class decodes; a reply or a head
// that is cut off anywhere, or has a byte changed, is refused or read as other values, and never read past its end.

#include "lock_calls.hpp"

#include <gtest/gtest.h>

#include <random>

#include "head.hpp"

namespace stillpoint::rados {
namespace {

std::string bytes(std::initializer_list<int> values)
{
    std::string text;
    for (const int value : values) {
        text += static_cast<char>(value);
    }
    return text;
}

TEST(LockCalls, MessagesHaveTheBytesOfTheClass)
{
    EXPECT_EQ(info_message("ab"), bytes({1, 1, 6, 0, 0, 0, 2, 0, 0, 0, 'a', 'b'}));
    EXPECT_EQ(unlock_message("a", "c"), bytes({1, 1, 10, 0, 0, 0, 1, 0, 0, 0, 'a', 1, 0, 0, 0, 'c'}));
    EXPECT_EQ(lock_message({.type = LockType::exclusive, .name = "a", .cookie = "c", .description = "d", .lease_ms = 1500}),
              bytes({1, 1, 29, 0, 0, 0, 1, 0,   0, 0, 'a', 1, 1,    0,    0,    0,    'c', 0,
                     0, 0, 0,  1, 0, 0, 0, 'd', 1, 0, 0,   0, 0x00, 0x65, 0xcd, 0x1d, 1}));
    EXPECT_EQ(break_message("a", {.entity_type = 8, .entity_number = 0x0102, .cookie = "c"}),
              bytes({1, 1, 19, 0, 0, 0, 1, 0, 0, 0, 'a', 8, 2, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 'c'}));
}

/// One locker, with an address of some form after the expiration.
std::string reply()
{
    const std::string id = bytes({1, 1, 14, 0, 0, 0, 8, 9, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 'c'});
    const std::string facts = bytes({1, 1, 12, 0, 0, 0, 0x44, 0x33, 0x22, 0x11, 0, 0, 0, 0, 7, 7, 7, 7});
    const std::string content = bytes({1, 0, 0, 0}) + id + facts + bytes({1, 0, 0, 0, 0});
    return bytes({1, 1, static_cast<int>(content.size()), 0, 0, 0}) + content;
}

TEST(LockCalls, ALockerIsRead)
{
    const auto state = lock_state_in(reply());
    ASSERT_TRUE(state);
    EXPECT_EQ(state->type, LockType::exclusive);
    ASSERT_EQ(state->lockers.size(), 1u);
    EXPECT_EQ(state->lockers[0].entity_type, 8);
    EXPECT_EQ(state->lockers[0].entity_number, 9u);
    EXPECT_EQ(state->lockers[0].cookie, "c");
    EXPECT_EQ(state->lockers[0].expires_s, 0x11223344u);
}

TEST(LockCalls, AReplyThatIsCutOffIsRefused)
{
    const std::string whole = reply();
    for (std::size_t size = 0; size < whole.size() - 4; ++size) {
        EXPECT_FALSE(lock_state_in(whole.substr(0, size))) << size;
    }
}

TEST(LockCalls, ChangedRepliesAreReadWithinTheirEnd)
{
    std::mt19937 random(20);
    for (unsigned round = 0; round < 20'000; ++round) {
        std::string text = reply();
        for (unsigned change = 0; change <= round % 3; ++change) {
            text[random() % text.size()] = static_cast<char>(random());
        }
        const std::string exact(text);  // The sanitizer sees a read past its end.
        static_cast<void>(lock_state_in(exact));
    }
}

Head sound_head()
{
    Head head;
    head.object_bytes = 4 << 20;
    head.size_bytes = 20 << 20;
    head.is_published = true;
    head.generation = 7;
    head.address = "127.0.0.1:0/123";
    head.owner = own_identity(1);
    return head;
}

TEST(Head, WhatIsWrittenIsRead)
{
    const Head head = sound_head();
    const auto read = Head::parse(head.text());
    ASSERT_TRUE(read);
    EXPECT_EQ(read->text(), head.text());
    EXPECT_EQ(read->owner.agent, static_cast<std::uint64_t>(getpid()));
}

TEST(Head, WhatIsMalformedIsRefused)
{
    const std::string text = sound_head().text();
    for (std::size_t size = 0; size < text.size(); ++size) {
        if (size == 0 || text[size - 1] != '\n') {
            EXPECT_FALSE(Head::parse(text.substr(0, size))) << size;
        }
    }
    EXPECT_FALSE(Head::parse(text + "generation=8\n"));
    EXPECT_FALSE(Head::parse(text + std::string(5000, 'a')));
    EXPECT_FALSE(Head::parse("layout=0\n"));
    EXPECT_FALSE(Head::parse("layout=-1\n"));
    const auto newer = Head::parse("layout=2\nshards=4\n");
    ASSERT_TRUE(newer);
    EXPECT_EQ(newer->layout, 2u);
}

TEST(Head, ALivingProcessIsToldFromADeadOne)
{
    const Identity own = own_identity(static_cast<std::uint64_t>(getpid()));
    EXPECT_NE(own.started, 0u);
    EXPECT_EQ(life_of_program(own, own), Life::alive);
    EXPECT_EQ(life_of_agent(own, own), Life::alive);
    Identity other = own;
    ++other.started;
    EXPECT_EQ(life_of_program(other, own), Life::dead);
    other.boot = "another";
    EXPECT_EQ(life_of_program(other, own), Life::unknown);
    other = own;
    ++other.space;
    EXPECT_EQ(life_of_agent(other, own), Life::unknown);
}

}  // namespace
}  // namespace stillpoint::rados

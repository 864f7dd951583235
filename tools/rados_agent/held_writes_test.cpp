// Writes of a full cluster. Invariants: whatever is refused and in whichever order answers come, an object ends with the bytes of its
// writes in the order of their requests; a write ends after those before it in its object; none is lost and none ends twice.

#include "held_writes.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>

namespace stillpoint::rados {
namespace {

using Slots = std::vector<std::uint32_t>;

TEST(HeldWrites, EndWithTheirAnswersWhereThereIsRoom)
{
    HeldWrites writes;
    EXPECT_TRUE(writes.begin(0, 7));
    EXPECT_TRUE(writes.begin(1, 7));
    EXPECT_TRUE(writes.begin(2, 8));
    EXPECT_EQ(writes.end(0, false), Slots{0});
    EXPECT_EQ(writes.end(2, false), Slots{2});
    EXPECT_EQ(writes.end(1, false), Slots{1});
    EXPECT_FALSE(writes.is_full());
    EXPECT_TRUE(writes.take().empty());
}

TEST(HeldWrites, KeepTheOrderOfAnObjectAndLetOthersPass)
{
    HeldWrites writes;
    EXPECT_TRUE(writes.begin(3, 7));
    EXPECT_TRUE(writes.begin(1, 7));
    EXPECT_TRUE(writes.end(3, true).empty());
    EXPECT_TRUE(writes.is_full());
    EXPECT_TRUE(writes.take().empty()) << "one of the object is under way";
    EXPECT_FALSE(writes.begin(0, 7));
    EXPECT_TRUE(writes.begin(2, 9));
    EXPECT_EQ(writes.end(2, false), Slots{2});
    EXPECT_TRUE(writes.end(1, false).empty()) << "the one before it will write over it";
    EXPECT_EQ(writes.take(), (Slots{3, 1, 0}));
    EXPECT_TRUE(writes.is_full()) << "they may be refused again";
    EXPECT_EQ(writes.end(3, false), Slots{3});
    EXPECT_TRUE(writes.end(0, false).empty()) << "that before it is under way";
    EXPECT_EQ(writes.end(1, false), (Slots{1, 0}));
    EXPECT_FALSE(writes.is_full());
}

/// A cluster that does what is sent in its order, answers in any, and now and then refuses.
TEST(HeldWrites, LeaveTheBytesOfTheLastWriteWhateverIsRefused)
{
    constexpr std::uint64_t objects = 3, values = 60;
    for (std::uint32_t seed = 0; seed < 12; ++seed) {
        std::mt19937 random(seed);
        HeldWrites writes;
        std::map<std::uint64_t, std::uint64_t> there, expected, last_ended;
        std::array<std::uint64_t, write_slots> value_of{}, object_of{};
        Slots free, answers;
        std::map<std::uint32_t, bool> refused;
        for (std::uint32_t slot = 0; slot < write_slots; ++slot) {
            free.push_back(slot);
        }
        const auto send = [&](std::uint32_t slot) {
            refused[slot] = random() % 3 == 0 && value_of[slot] < values;
            if (!refused[slot]) {
                there[object_of[slot]] = value_of[slot];
            }
            answers.push_back(slot);
        };
        for (std::uint64_t value = 1; value <= values || free.size() < write_slots;) {
            const auto choice = random() % 4;
            if (choice < 2 && value <= values && !free.empty()) {
                const std::uint32_t slot = free.back();
                free.pop_back();
                value_of[slot] = value++;
                object_of[slot] = random() % objects;
                expected[object_of[slot]] = value_of[slot];
                if (writes.begin(slot, object_of[slot])) {
                    send(slot);
                }
            } else if (choice == 2 && !answers.empty()) {
                const auto at = static_cast<std::ptrdiff_t>(random() % answers.size());
                const std::uint32_t slot = answers[static_cast<std::size_t>(at)];
                answers.erase(answers.begin() + at);
                for (const std::uint32_t ended : writes.end(slot, refused[slot])) {
                    EXPECT_LT(last_ended[object_of[ended]], value_of[ended]);
                    last_ended[object_of[ended]] = value_of[ended];
                    free.push_back(ended);
                }
            } else {
                for (const std::uint32_t slot : writes.take()) {
                    send(slot);
                }
            }
        }
        EXPECT_EQ(there, expected) << "seed " << seed;
        EXPECT_FALSE(writes.is_full());
    }
}

}  // namespace
}  // namespace stillpoint::rados

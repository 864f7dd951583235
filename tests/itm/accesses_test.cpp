// Values of every type that the ABI has functions for are read and written by transactions, and are there after a restart. By programs
// that GCC instruments.

#include <complex>
#include <cstring>
#include <numeric>
#include <vector>

#include "pool_fixture.hpp"

SP_PERSISTENT long durable_number = 3;

namespace {

class Accesses : public InBothMemories {};
STILLPOINT_IN_BOTH_MEMORIES(Accesses);

__extension__ using ComplexFloat = _Complex float;
__extension__ using ComplexDouble = _Complex double;
__extension__ using ComplexLongDouble = _Complex long double;
using Vector64 = int __attribute__((vector_size(8)));
using Vector128 = float __attribute__((vector_size(16)));

struct Values {
    std::uint8_t u1;
    std::int16_t u2;
    std::uint32_t u4;
    std::uint64_t u8;
    bool truth;
    float f;
    double d;
    long double e;
    ComplexFloat cf;
    ComplexDouble cd;
    ComplexLongDouble ce;
    Vector64 m64;
    Vector128 m128;
    void* pointer;
    std::uint8_t last;
};

struct [[gnu::packed]] Crooked {
    char before;
    std::uint16_t u2;
    std::uint32_t u4;
    std::uint64_t u8;
    double d;
    char after;
};

TEST_P(Accesses, EveryTypeIsWrittenReadAndDurable)
{
    auto& values = root<Values>("state");
    __transaction_atomic
    {
        values.u1 = 0xfe;
        values.u2 = -2;
        values.u4 = 0xfedcba98;
        values.u8 = 0xfedcba9876543210;
        values.truth = true;
        values.f = 1.5F;
        values.d = 2.5;
        values.e = 3.5L;
        values.cf = 4.5F;
        values.cd = 5.5;
        values.ce = 6.5L;
        values.m64 = Vector64{7, 8};
        values.m128 = Vector128{9, 10, 11, 12};
        values.pointer = &values;
        values.last = 15;
    }
    restart();
    auto& found = root<Values>("state");
    bool right = true;
    __transaction_atomic
    {
        right = found.u1 == 0xfe && found.u2 == -2 && found.u4 == 0xfedcba98 && found.u8 == 0xfedcba9876543210 && found.truth;
        right = right && found.f == 1.5F && found.d == 2.5 && found.e == 3.5L && found.cf == 4.5F && found.cd == 5.5 && found.ce == 6.5L;
        right = right && found.m64[0] == 7 && found.m64[1] == 8 && found.m128[0] == 9 && found.m128[3] == 12 && found.pointer == &found;
        right = right && found.last == 15;
    }
    EXPECT_TRUE(right);
    EXPECT_EQ(found.u8, 0xfedcba9876543210);
}

TEST_P(Accesses, ValuesThatLieAcrossWordsAreWhole)
{
    auto& crooked = root<Crooked>("state");
    __transaction_atomic
    {
        crooked.before = 'b';
        crooked.u2 = 0x1234;
        crooked.u4 = 0x56789abc;
        crooked.u8 = 0xfedcba9876543210;
        crooked.d = 0.25;
        crooked.after = 'a';
        crooked.u8 += crooked.u4;
        crooked.d *= 2;
    }
    restart();
    auto& found = root<Crooked>("state");
    EXPECT_EQ(found.before, 'b');
    EXPECT_EQ(found.u2, 0x1234);
    EXPECT_EQ(found.u4, 0x56789abcU);
    EXPECT_EQ(found.u8, 0xfedcba9876543210 + 0x56789abcU);
    EXPECT_EQ(found.d, 0.5);
    EXPECT_EQ(found.after, 'a');
}

TEST_P(Accesses, AReadSeesWhatTheTransactionHasWrittenOfAWord)
{
    auto& bytes = root<std::uint8_t[16]>("state");
    __transaction_atomic { std::memset(bytes, 0x11, sizeof bytes); }
    std::uint64_t seen = 0;
    std::uint32_t seen_half = 0;
    __transaction_atomic
    {
        bytes[3] = 0xff;
        bytes[8] = 0xee;
        std::memcpy(&seen, bytes + 1, sizeof seen);
        std::memcpy(&seen_half, bytes + 2, sizeof seen_half);
    }
    EXPECT_EQ(seen, 0xee'11'11'11'11'ff'11'11U);
    EXPECT_EQ(seen_half, 0x11'11'ff'11U);
}

struct Text {
    char bytes[4096];
};

/// Every distance and length at which words, pieces and overlap can go wrong.
TEST_P(Accesses, CopiesAreThoseOfOrdinaryMemory)
{
    auto& text = root<Text>("state");
    std::vector<char> model(sizeof text.bytes);
    std::iota(model.begin(), model.end(), char{1});
    __transaction_atomic { std::memcpy(text.bytes, model.data(), sizeof text.bytes); }
    const std::size_t lengths[] = {0, 1, 7, 8, 9, 63, 1023, 1024, 1025, 2049};
    const std::size_t places[] = {0, 1, 8, 13, 1000, 1024};
    for (const std::size_t length : lengths) {
        for (const std::size_t from : places) {
            for (const std::size_t to : places) {
                __transaction_atomic { std::memmove(text.bytes + to, text.bytes + from, length); }
                std::memmove(model.data() + to, model.data() + from, length);
                ASSERT_EQ(std::memcmp(text.bytes, model.data(), model.size()), 0) << length << " from " << from << " to " << to;
            }
            __transaction_atomic { std::memset(text.bytes + from, static_cast<int>(length), length); }
            std::memset(model.data() + from, static_cast<int>(length), length);
            char copy[4096] = {};
            __transaction_atomic
            {
                text.bytes[from] = '!';
                std::memcpy(copy, text.bytes, sizeof copy);
            }
            model[from] = '!';
            ASSERT_EQ(std::memcmp(copy, model.data(), sizeof copy), 0) << length << " from " << from;
        }
    }
    restart();
    EXPECT_EQ(std::memcmp(root<Text>("state").bytes, model.data(), model.size()), 0);
}

struct Record {
    std::uint64_t words[20];
    char name[13];
};

TEST_P(Accesses, StructuresAreAssigned)
{
    auto& records = root<Record[3]>("state");
    Record outside{};
    outside.words[19] = 19;
    std::strcpy(outside.name, "twelve bytes");
    Record copy{};
    __transaction_atomic
    {
        records[0] = outside;
        records[1] = records[0];
        records[1].words[0] = 1;
        records[2] = records[1];
        copy = records[2];
    }
    EXPECT_EQ(copy.words[0], 1U);
    EXPECT_EQ(copy.words[19], 19U);
    EXPECT_STREQ(copy.name, "twelve bytes");
    restart();
    EXPECT_STREQ(root<Record[3]>("state")[2].name, "twelve bytes");
}

TEST_P(Accesses, AGlobalVariableCanBeDurable)
{
    __transaction_atomic { durable_number += 4; }
    EXPECT_EQ(durable_number, 7);
    if (is_durable()) {
        restart();
        EXPECT_EQ(durable_number, 7);
    }
    durable_number = 3;
}

}  // namespace

// Invariants: a word is found where it was noted last; nothing is found of words whose bytes the record got by other ways since.

#include <gtest/gtest.h>

#include "engines/nvthreads/fase_thread.hpp"

namespace stillpoint::nvthreads {
namespace {

constexpr std::uint64_t word = 77;
constexpr std::uint64_t word_bytes = sizeof(std::uint64_t);

TEST(NewestWords, FindAWordWhereItWasNotedLast)
{
    NewestWords words;
    EXPECT_EQ(words.find(word), NewestWords::no_index);
    words.note(word, 5);
    words.note(word + 1, 6);
    EXPECT_EQ(words.find(word), 5U);
    words.note(word, 9);
    EXPECT_EQ(words.find(word), 9U);
    EXPECT_EQ(words.find(word + 1), 6U);
}

TEST(NewestWords, ForgetWordsOfWhichAByteWasStored)
{
    NewestWords words;
    words.note(word, 1);
    words.note(word + 1, 2);
    words.note(word + 2, 3);
    words.forget(word * word_bytes + 7, 2);
    EXPECT_EQ(words.find(word), NewestWords::no_index);
    EXPECT_EQ(words.find(word + 1), NewestWords::no_index);
    EXPECT_EQ(words.find(word + 2), 3U);
}

TEST(NewestWords, ForgetAllWithALongRangeOrANewRecord)
{
    NewestWords words;
    words.note(word, 1);
    words.forget(word * word_bytes - 4096, 8192);
    EXPECT_EQ(words.find(word), NewestWords::no_index);
    words.note(word, 2);
    words.forget();
    EXPECT_EQ(words.find(word), NewestWords::no_index);
}

}  // namespace
}  // namespace stillpoint::nvthreads

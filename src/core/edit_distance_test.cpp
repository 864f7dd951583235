// Invariants: the distance is that of Levenshtein, the same both ways, and long words are compared by their beginning.

#include "core/edit_distance.hpp"

#include <gtest/gtest.h>
#include <string>

namespace stillpoint {
namespace {

TEST(EditDistance, CountsInsertionsRemovalsAndReplacements)
{
    EXPECT_EQ(edit_distance("info", "info"), 0u);
    EXPECT_EQ(edit_distance("inf", "info"), 1u);
    EXPECT_EQ(edit_distance("infox", "info"), 1u);
    EXPECT_EQ(edit_distance("docter", "doctor"), 1u);
    EXPECT_EQ(edit_distance("", "run"), 3u);
    EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
    EXPECT_EQ(edit_distance("sitting", "kitten"), 3u);
}

TEST(EditDistance, LooksAtTheBeginningOfLongWords)
{
    const std::string word(48, 'x');
    EXPECT_EQ(edit_distance(word + "a", word + "b"), 0u);
}

}  // namespace
}  // namespace stillpoint

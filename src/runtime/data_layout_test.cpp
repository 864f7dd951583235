#include "runtime/data_layout.hpp"

#include <gtest/gtest.h>

namespace stillpoint {
namespace {

int nothing() { return 0; }

StatedLayout layout_with(std::uint64_t number, std::vector<std::pair<std::uint64_t, std::uint64_t>> ways)
{
    StatedLayout stated{"data", number, {}};
    for (const auto& [from, to] : ways) {
        stated.steps.push_back({from, to, &nothing});
    }
    return stated;
}

std::vector<std::uint64_t> numbers(const std::vector<LayoutStep>& steps)
{
    std::vector<std::uint64_t> reached;
    for (const LayoutStep& step : steps) {
        reached.push_back(step.to);
    }
    return reached;
}

TEST(DataLayout, HasANameAndANumber)
{
    const auto parsed = parse_layout("a.b_c-9:18446744073709551615");
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->name, "a.b_c-9");
    EXPECT_EQ(parsed->number, ~std::uint64_t{0});
    for (const char* const bad : {"", ":", "a", "a:", ":1", "a:-1", "a:1 ", "a:1:2", "a/b:1", "a:18446744073709551616"}) {
        EXPECT_EQ(parse_layout(bad).error().code, SP_E_INVALID_ARGUMENT) << bad;
    }
}

TEST(DataLayout, IsReachedByTheFewestSteps)
{
    const StatedLayout stated = layout_with(5, {{1, 2}, {2, 3}, {3, 5}, {2, 5}, {5, 1}, {3, 2}});
    EXPECT_EQ(numbers(*steps_between(stated, 1)), (std::vector<std::uint64_t>{2, 5}));
    EXPECT_EQ(numbers(*steps_between(stated, 3)), (std::vector<std::uint64_t>{5}));
    EXPECT_TRUE(steps_between(stated, 5)->empty());
    EXPECT_FALSE(steps_between(stated, 4));
}

TEST(DataLayout, IsNotSearchedForeverInCircles) { EXPECT_FALSE(steps_between(layout_with(9, {{1, 2}, {2, 1}, {1, 1}}), 1)); }

}  // namespace
}  // namespace stillpoint

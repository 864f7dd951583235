// A variable is matched where only one pair can be meant, and refused by name where it cannot be.

#include "runtime/durable_globals_match.hpp"

#include <gtest/gtest.h>

namespace stillpoint::durable_globals {
namespace {

Variable variable(std::string name, std::uint64_t size = 4, std::string scope = "", std::string module = "prog", std::string type = "")
{
    return {std::move(name), std::move(scope), std::move(type), std::move(module), size};
}

TEST(DurableGlobalsMatch, FindsNamesInAnyOrderAndInARenamedModule)
{
    const Matching found = match({variable("b", 4, "", "new"), variable("a", 8, "", "new")}, {variable("a", 8), variable("b")});
    EXPECT_EQ(found.of_present, (std::vector<std::size_t>{1, 0}));
    EXPECT_TRUE(found.refused.empty());
}

TEST(DurableGlobalsMatch, LetsTheFileAndThenTheModuleDecideBetweenEqualNames)
{
    const Matching by_file = match({variable("n", 4, "two.c"), variable("n", 4, "one.c")},
                                   {variable("n", 4, "one.c"), variable("n", 4, "two.c")});
    EXPECT_EQ(by_file.of_present, (std::vector<std::size_t>{1, 0}));
    const Matching by_module = match({variable("n", 4, "", "libb"), variable("n", 4, "", "liba")},
                                     {variable("n", 4, "", "liba"), variable("n", 4, "", "libb")});
    EXPECT_EQ(by_module.of_present, (std::vector<std::size_t>{1, 0}));
}

TEST(DurableGlobalsMatch, RefusesWhatCouldBeEither)
{
    const Matching found = match({variable("n", 4, "three.c"), variable("n", 4, "four.c")},
                                 {variable("n", 4, "one.c"), variable("n", 4, "two.c")});
    EXPECT_EQ(found.of_present, (std::vector<std::size_t>{nothing, nothing}));
    EXPECT_EQ(found.refused.size(), 2u);
}

TEST(DurableGlobalsMatch, RefusesAnotherSizeAndAnotherTypeByName)
{
    const Matching size = match({variable("a", 8)}, {variable("a", 4)});
    ASSERT_EQ(size.refused.size(), 1u);
    EXPECT_EQ(size.refused[0], "a: 4 bytes then, 8 now");
    EXPECT_EQ(size.of_present[0], nothing);
    const Matching type = match({variable("a", 4, "", "prog", "int")}, {variable("a", 4, "", "prog", "float")});
    ASSERT_EQ(type.refused.size(), 1u);
    EXPECT_EQ(type.refused[0], "a: float then, int now");
    EXPECT_TRUE(match({variable("a", 4, "", "prog", "int")}, {variable("a")}).refused.empty());
}

TEST(DurableGlobalsMatch, TakesANameWithItsNamespacesForTheOneWithout)
{
    const Matching found = match({variable("app::counter")}, {variable("counter")});
    EXPECT_EQ(found.of_present[0], 0u);
    EXPECT_EQ(match({variable("a::n"), variable("b::n")}, {variable("n")}).refused.size(), 2u);
}

TEST(DurableGlobalsMatch, LeavesUnnamedBytesAndNewNamesAlone)
{
    const Matching found = match({variable(""), variable("x")}, {variable(""), variable("y")});
    EXPECT_EQ(found.of_present, (std::vector<std::size_t>{nothing, nothing}));
    EXPECT_TRUE(found.refused.empty());
}

}  // namespace
}  // namespace stillpoint::durable_globals

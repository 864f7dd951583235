#include "runtime/type_text.hpp"

#include <gtest/gtest.h>

namespace stillpoint::type_text {
namespace {

constexpr std::string_view item = "root\tnails\titem\ntype\titem\t16\nmember\tpieces\t0\ti64\nmember\tcents\t8\ti32\n";

Types types_of(std::string_view text)
{
    auto parsed = parse(text);
    return parsed ? std::move(*parsed) : Types{};
}

std::string difference_to(std::string_view present) { return first_difference(types_of(item), types_of(present)).value_or(""); }

TEST(TypeText, IsReadAsItIsWritten) { EXPECT_EQ(text_of(types_of(item)), item); }

TEST(TypeText, MayHaveNamesOfAnyLength)
{
    const std::string name(2000, 'n');
    const std::string text = "root\t" + name + "\t" + name + "\ntype\t" + name + "\t16\nmember\t" + name + "\t0\t" + name + "\n";
    EXPECT_EQ(text_of(types_of(text)), text);
}

TEST(TypeText, WithAnotherLineIsRefused)
{
    for (const char* const bad : {"root\tnails\n", "member\ta\t0\ti64\n", "type\titem\t16\textra\n", "x", "\n", "root\ta\tb\tc\td\n"}) {
        EXPECT_EQ(parse(bad).error().code, SP_E_POOL_CORRUPT) << bad;
    }
}

TEST(TypeText, NamesTheMemberThatDiffers)
{
    EXPECT_EQ(difference_to(item), "");
    EXPECT_EQ(difference_to("root\tnails\tpiece\n"), "root nails was of type item, and is of type piece");
    EXPECT_EQ(difference_to("type\titem\t16\nmember\tpieces\t0\ti64\n"), "item: the member cents is gone");
    EXPECT_EQ(difference_to("type\titem\t16\nmember\tcount\t0\ti64\nmember\tcents\t8\ti32\n"),
              "item: the member pieces is gone, and count is in its place");
    EXPECT_EQ(difference_to("type\titem\t16\nmember\tpieces\t0\tu64\nmember\tcents\t8\ti32\n"),
              "item: the member pieces was of type i64, and is of type u64");
    EXPECT_EQ(difference_to("type\titem\t16\nmember\tpieces\t0\ti64\nmember\tcents\t8\ti32\nmember\tshelf\t12\ti32\n"),
              "item: the member shelf is new");
    EXPECT_EQ(difference_to("type\titem\t16\nmember\tpieces\t8\ti64\nmember\tcents\t0\ti32\n"),
              "item: the member pieces was at 0, and is at 8");
    EXPECT_EQ(difference_to("type\titem\t24\nmember\tpieces\t0\ti64\nmember\tcents\t8\ti32\n"), "item: it had 16 bytes, and has 24");
}

TEST(TypeText, OfOtherDataIsKept)
{
    const Types all = merged(types_of(item), types_of("root\tscrews\tscrew\ntype\tscrew\t4\n"));
    EXPECT_EQ(all.roots.size(), 2U);
    EXPECT_EQ(all.types.size(), 2U);
    EXPECT_EQ(merged(types_of(item), types_of("type\titem\t4\n")).types.at("item").size, "4");
}

}  // namespace
}  // namespace stillpoint::type_text

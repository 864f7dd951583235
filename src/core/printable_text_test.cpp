// Texts of others reach the terminal without its commands.

#include "core/printable_text.hpp"

#include <array>
#include <gtest/gtest.h>
#include <string>

namespace stillpoint {
namespace {

std::string printable(std::string_view text, std::size_t room = 64)
{
    std::array<char, 64> bytes{};
    return {bytes.data(), copy_printable(text, std::span(bytes).first(room))};
}

TEST(PrintableText, LeavesOrdinaryTextAndUtf8AsTheyAre)
{
    EXPECT_EQ(printable("bank.pool"), "bank.pool");
    EXPECT_EQ(printable("Küche \xe2\x82\xac"), "Küche \xe2\x82\xac");
}

TEST(PrintableText, ShowsControlCharactersAsNumbers)
{
    EXPECT_EQ(printable("a\x1b[2Jb\n"), "a\\x1b[2Jb\\x0a");
    EXPECT_EQ(printable("\x7f"), "\\x7f");
    EXPECT_EQ(printable("\xc2\x9b"
                        "31m"),
              "\\xc2\\x9b31m");
}

TEST(PrintableText, StopsBeforeWhatDoesNotFit)
{
    EXPECT_EQ(printable("abcd", 2), "ab");
    EXPECT_EQ(printable("a\x1b", 4), "a");
}

}  // namespace
}  // namespace stillpoint

// Invariants: the table is the only list of options; a bad value never changes an option; every
// error tells the user what would have been right.

#include "api/options.hpp"

#include <cstdlib>
#include <gtest/gtest.h>

#include "api/registry.hpp"
#include "runtime/engine.hpp"

namespace stillpoint {
namespace {

TEST(Options, HaveTheDefaultsOfTheTable)
{
    const Options options;
    for (const auto& row : option_rows()) {
        EXPECT_EQ(option_value(options, row), row.default_text) << row.name;
    }
    EXPECT_EQ(options.interval_ms, 0u);
    EXPECT_EQ(options.engine, engine_drivers().front().format.name);
    EXPECT_FALSE(options.quiet);
}

TEST(Options, AcceptTheirOwnDefaultAsText)
{
    Options options;
    for (const auto& row : option_rows()) {
        EXPECT_TRUE(parse_option(options, row.name, row.default_text)) << row.name;
    }
}

TEST(Options, AcceptNamesWithDashes)
{
    Options options;
    ASSERT_TRUE(parse_option(options, "interval-ms", "50"));
    EXPECT_EQ(options.interval_ms, 50u);
}

TEST(Options, RejectANumberOutsideItsBoundsAndStateThem)
{
    Options options;
    for (const char* bad : {"3600001", "-1", "1x", "", "99999999999999999999999"}) {
        const auto result = parse_option(options, "interval_ms", bad);
        ASSERT_FALSE(result) << bad;
        EXPECT_EQ(result.error().code, SP_E_INVALID_ARGUMENT);
        EXPECT_NE(result.error().text().find("3600000"), std::string_view::npos);
    }
    EXPECT_EQ(options.interval_ms, 0u);
}

TEST(Options, RejectAWordThatIsNotAChoiceAndListTheWords)
{
    Options options;
    for (const char* bad : {"", "fil", "auto|file", "|"}) {
        const auto result = parse_option(options, "medium", bad);
        ASSERT_FALSE(result) << bad;
        EXPECT_NE(result.error().text().find("auto|file|dax"), std::string_view::npos);
    }
    EXPECT_EQ(options.medium, "auto");
}

TEST(Options, SuggestTheNearestNameForAnUnknownOne)
{
    Options options;
    const auto result = parse_option(options, "intervall_ms", "5");
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().text().find("did you mean 'interval_ms'"), std::string_view::npos);
    EXPECT_NE(result.error().text().find("durability"), std::string_view::npos);
}

TEST(Options, ReadTheTextOfSpOpen)
{
    Options options;
    ASSERT_TRUE(parse_option_text(options, "  interval_ms=50\tmedium=file quiet "));
    EXPECT_EQ(options.interval_ms, 50u);
    EXPECT_EQ(options.medium, "file");
    EXPECT_TRUE(options.quiet);
    EXPECT_TRUE(parse_option_text(options, ""));
    EXPECT_FALSE(parse_option_text(options, "interval_ms"));
    EXPECT_FALSE(parse_option_text(options, "=5"));
    EXPECT_FALSE(parse_option_text(options, "nothing"));
}

TEST(Options, ComeFromTheEnvironmentAndNameABadVariable)
{
    ASSERT_EQ(setenv("STILLPOINT_INTERVAL_MS", "25", 1), 0);
    auto options = options_from_environment();
    ASSERT_TRUE(options);
    EXPECT_EQ(options->interval_ms, 25u);
    ASSERT_EQ(setenv("STILLPOINT_INTERVAL_MS", "soon", 1), 0);
    options = options_from_environment();
    ASSERT_FALSE(options);
    EXPECT_NE(options.error().text().find("STILLPOINT_INTERVAL_MS"), std::string_view::npos);
    unsetenv("STILLPOINT_INTERVAL_MS");
}

TEST(Options, OfAnEngineAreSetLikeTheOthers)
{
    Options options;
    for (const OptionRow& row : option_rows()) {
        if (row.engine.empty()) {
            continue;
        }
        EXPECT_NE(find_engine(row.engine), nullptr) << row.name;
        EXPECT_FALSE(is_given(options, row.name));
        const std::string other = row.kind == OptionKind::flag     ? "true"
                                  : row.kind == OptionKind::choice ? std::string(row.words.substr(row.words.rfind('|') + 1))
                                                                   : std::string(row.default_text);
        ASSERT_TRUE(parse_option(options, row.flag_name().substr(2), other)) << row.name;
        EXPECT_EQ(option_value(options, row), other);
        EXPECT_TRUE(is_given(options, row.name));
        EXPECT_EQ(option_value(Options{}, row), row.default_text);
    }
}

TEST(Options, NameEveryEngineOfTheRegistryAsAChoice)
{
    for (const EngineDriver& driver : engine_drivers()) {
        Options options;
        ASSERT_TRUE(parse_option(options, "engine", driver.format.name));
        EXPECT_EQ(options.engine, driver.format.name);
        EXPECT_NE(find_option("interval_ms")->sentence.find(driver.format.name), std::string_view::npos);
    }
}

TEST(Options, RefuseAPoolThatStartsLargerThanItsMaximum)
{
    Options options;
    ASSERT_TRUE(parse_option(options, "pool_size_mb", std::to_string(options.pool_max_mb + 1)));
    EXPECT_FALSE(check_options(options));
}

TEST(Options, KnowWhichOfThemWereGiven)
{
    Options options;
    EXPECT_FALSE(is_given(options, "engine"));
    ASSERT_TRUE(parse_option(options, "engine", default_engine()));
    EXPECT_TRUE(is_given(options, "engine")) << "also if that is the default";
    EXPECT_FALSE(is_given(options, "durability"));
    ASSERT_FALSE(parse_option(options, "durability", "maybe"));
    EXPECT_FALSE(is_given(options, "durability"));
    ASSERT_TRUE(parse_option(options, "pool-max-mb", "32"));
    EXPECT_TRUE(check_options(options)) << "the default size does not count against a maximum that is given alone";
    ASSERT_TRUE(parse_option(options, "pool-size-mb", "64"));
    EXPECT_FALSE(check_options(options));
}

}  // namespace
}  // namespace stillpoint

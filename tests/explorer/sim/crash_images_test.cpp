// Which images are examined: all of a few, and of many those that matter.

#include <gtest/gtest.h>
#include <set>
#include <vector>

#include "sim/crash_images.hpp"

namespace stillpoint::sim {
namespace {

/// A file with `lines` lines stored to and not written back.
CrashModel with_pending_lines(unsigned lines)
{
    CrashModel model(Profile::cache_line, CrashImage{PageMap(64 * page_bytes), true});
    const std::uint64_t word = 0x6161616161616161;
    for (unsigned i = 0; i < lines; ++i) {
        model.apply({EventKind::store, 1, 64 * i, sizeof word, 0, reinterpret_cast<const std::byte*>(&word)});
    }
    return model;
}

/// A bit for each line that landed.
std::vector<std::vector<bool>> landed(const CrashModel& model, unsigned lines, const ImageChoice& choice, std::uint64_t seed,
                                      ImagesOfAMoment& moment)
{
    std::vector<std::vector<bool>> images;
    std::mt19937_64 random(seed);
    moment = for_each_image(model, choice, random, [&](const CrashImage& image) {
        std::vector<bool> lines_landed(lines);
        for (unsigned i = 0; i < lines; ++i) {
            char byte = '\0';
            image.content.read(64 * i, &byte, 1);
            lines_landed[i] = byte != '\0';
        }
        images.push_back(lines_landed);
        return true;
    });
    return images;
}

TEST(CrashImages, AreAllOfThemWhereThereAreFew)
{
    ImagesOfAMoment moment;
    const auto images = landed(with_pending_lines(10), 10, {4096, 100}, 1, moment);
    EXPECT_TRUE(moment.exhaustive);
    EXPECT_EQ(moment.possible, 1024);
    EXPECT_EQ(std::set(images.begin(), images.end()).size(), 1024u);
}

TEST(CrashImages, BeyondThatHoldNothingEverythingEachAloneAndEachMissing)
{
    constexpr unsigned lines = 20;
    ImagesOfAMoment moment;
    const auto images = landed(with_pending_lines(lines), lines, {4096, 400}, 1, moment);
    EXPECT_FALSE(moment.exhaustive);
    EXPECT_EQ(moment.visited, 400u);
    const std::set found(images.begin(), images.end());
    EXPECT_TRUE(found.contains(std::vector<bool>(lines, false)));
    EXPECT_TRUE(found.contains(std::vector<bool>(lines, true)));
    for (unsigned i = 0; i < lines; ++i) {
        std::vector<bool> alone(lines, false);
        alone[i] = true;
        EXPECT_TRUE(found.contains(alone)) << i;
        alone.flip();
        EXPECT_TRUE(found.contains(alone)) << i;
        std::vector<bool> prefix(lines, false);
        std::fill_n(prefix.begin(), i + 1, true);
        EXPECT_TRUE(found.contains(prefix)) << i;
    }
}

TEST(CrashImages, AreTheSameForTheSameSeed)
{
    ImagesOfAMoment moment;
    const CrashModel model = with_pending_lines(40);
    EXPECT_EQ(landed(model, 40, {4096, 200}, 7, moment), landed(model, 40, {4096, 200}, 7, moment));
    EXPECT_NE(landed(model, 40, {4096, 200}, 7, moment), landed(model, 40, {4096, 200}, 8, moment));
}

TEST(CrashImages, EndWhenTheVisitorHasSeenEnough)
{
    std::mt19937_64 random(1);
    unsigned seen = 0;
    for_each_image(with_pending_lines(10), {4096, 100}, random, [&](const CrashImage&) { return ++seen < 5; });
    EXPECT_EQ(seen, 5u);
}

}  // namespace
}  // namespace stillpoint::sim

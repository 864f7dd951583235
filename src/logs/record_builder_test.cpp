// Invariants: a record has what was added, in that order; neighbouring words share a run; each run is valid, and lies in one page.

#include "logs/record_builder.hpp"

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "logs/record_checks.hpp"

namespace stillpoint::logs {
namespace {

class RecordBuilderTest : public ::testing::Test {
protected:
    static constexpr std::uint64_t image_bytes = 8 * page_bytes;

    void SetUp() override { ASSERT_TRUE(builder_.reserve(16 * image_bytes / 8)); }

    /// The image with the record's runs applied to noise.
    [[nodiscard]] std::vector<std::byte> applied(std::vector<std::byte> image) const
    {
        const std::uint64_t* const words = builder_.payload();
        for (std::uint64_t at = 0; at < builder_.words();) {
            const logs::Run run = decode_run(words[at]);
            const auto* const data = reinterpret_cast<const std::byte*>(words + at + 1);
            std::byte* const place = image.data() + run.word * 8;
            switch (run.kind) {
            case RunKind::words: std::memcpy(place, data, run.count * 8); break;
            case RunKind::zeroes: std::memset(place, 0, run.count * 8); break;
            case RunKind::bytes:
                for (unsigned i = 0; i < 8; ++i) {
                    place[i] = (run.count >> i & 1) != 0 ? data[i] : place[i];
                }
                break;
            }
            at += 1 + run_data_words(run);
        }
        return image;
    }

    RecordBuilder builder_;
};

TEST_F(RecordBuilderTest, HasEveryRangeThatWasAdded)
{
    std::mt19937_64 random(1);
    for (int round = 0; round < 200; ++round) {
        builder_.clear();
        std::vector<std::byte> image(image_bytes, std::byte{0xaa});
        const std::vector<std::byte> before = image;
        for (int i = 0; i < 20; ++i) {
            const std::uint64_t offset = random() % image_bytes;
            const std::uint64_t size = std::min<std::uint64_t>(image_bytes - offset, 1 + random() % (round % 2 == 0 ? 40 : 6000));
            std::vector<std::byte> bytes(size);
            for (std::uint64_t at = 0; at < size;) {  // Stretches of zeroes and of others.
                const std::uint64_t stretch = std::min<std::uint64_t>(size - at, 1 + random() % 150);
                const bool is_zero = random() % 2 == 0;
                std::generate_n(bytes.data() + at, stretch, [&] { return is_zero ? std::byte{0} : static_cast<std::byte>(random()); });
                at += stretch;
            }
            std::memcpy(image.data() + offset, bytes.data(), size);
            builder_.add_range(offset, bytes.data(), size);
        }
        ASSERT_TRUE(runs_are_valid(builder_.payload(), builder_.words(), image_bytes / 8));
        ASSERT_EQ(applied(before), image) << "round " << round;
    }
}

TEST_F(RecordBuilderTest, LetsNeighbouringWordsShareARun)
{
    const std::uint64_t values[] = {1, 2, 3, 4};
    builder_.add_word(10, 5);
    builder_.add_range(11 * 8, values, sizeof values);
    builder_.add_word(15, 6);
    EXPECT_EQ(builder_.words(), 7U);
    EXPECT_EQ(decode_run(builder_.payload()[0]).count, 6U);
}

TEST_F(RecordBuilderTest, GivesManyZeroesARunWithoutWords)
{
    std::vector<std::byte> page(page_bytes);
    builder_.add_range(page_bytes, page.data(), page.size());
    EXPECT_EQ(builder_.words(), 1U);
    page[2048] = std::byte{1};
    builder_.clear();
    builder_.add_range(page_bytes, page.data(), page.size());
    EXPECT_EQ(builder_.words(), 4U);
}

TEST_F(RecordBuilderTest, BeginsARunInEachPage)
{
    const std::vector<std::byte> bytes(2 * page_bytes, std::byte{7});
    builder_.add_range(page_bytes / 2, bytes.data(), bytes.size());
    EXPECT_TRUE(runs_are_valid(builder_.payload(), builder_.words(), image_bytes / 8));
    EXPECT_EQ(builder_.words(), 2 * page_bytes / 8 + 3);
}

}  // namespace
}  // namespace stillpoint::logs

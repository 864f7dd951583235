#include "versions/line_sums.hpp"

#include <array>
#include <gtest/gtest.h>

#include "core/units.hpp"
#include "versions/delta_layout.hpp"

namespace stillpoint::versions {
namespace {

class LineSumsOfAPage : public ::testing::Test {
protected:
    void SetUp() override { ASSERT_TRUE(sums_.reserve(16, 7)); }
    [[nodiscard]] std::optional<std::uint64_t> changed() { return sums_.changed_lines(3, page_.data()); }
    void store(std::size_t line) { ++reinterpret_cast<unsigned char&>(page_[line * cache_line_bytes + line % cache_line_bytes]); }

    LineSums sums_;
    alignas(page_bytes) std::array<std::byte, page_bytes> page_{};
};

TEST_F(LineSumsOfAPage, TellThoseThatChanged)
{
    EXPECT_FALSE(changed()) << "nothing is known of the first copy";
    EXPECT_EQ(changed(), 0U);
    for (const std::size_t line : {0U, 5U, 63U}) {
        store(line);
    }
    EXPECT_EQ(changed(), 1U | 1U << 5 | std::uint64_t{1} << 63);
    EXPECT_EQ(changed(), 0U);
    EXPECT_FALSE(sums_.changed_lines(4, page_.data())) << "another page";
}

TEST_F(LineSumsOfAPage, LeaveAPageAloneThatIsWrittenAllOver)
{
    EXPECT_FALSE(changed());
    for (std::size_t line = 0; line <= std::size_t{delta_lines_of_page_max}; ++line) {
        store(line);
    }
    constexpr unsigned with_first_and_last = LineSums::epochs_left_alone + 2U;
    for (unsigned epoch = 0; epoch < with_first_and_last; ++epoch) {
        EXPECT_FALSE(changed()) << epoch;
    }
    store(9);
    EXPECT_EQ(changed(), 1U << 9);
}

TEST_F(LineSumsOfAPage, KnowNothingOfAPageThatWasWrittenWithoutThem)
{
    EXPECT_FALSE(changed());
    EXPECT_EQ(changed(), 0U);
    store(1);
    sums_.forget(3);
    EXPECT_FALSE(changed());
    store(2);
    EXPECT_EQ(changed(), 1U << 2);
}

}  // namespace
}  // namespace stillpoint::versions

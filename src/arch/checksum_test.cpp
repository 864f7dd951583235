// Whatever vector unit computes it, a checksum is XXH3's: pools move between machines.

#include "arch/checksum.hpp"

#include <gtest/gtest.h>
#include <vector>

namespace stillpoint {
namespace {

TEST(Checksum, IsTheSameByEveryVectorUnit)
{
    std::vector<unsigned char> bytes(3 * 4096 + 1);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<unsigned char>(i * 2654435761U >> 13);
    }
    for (std::size_t size = 0; size <= bytes.size(); size += size < 1500 ? 1 : 61) {
        for (const std::size_t begin : {std::size_t{0}, std::min<std::size_t>(1, bytes.size() - size)}) {
            ASSERT_EQ(checksum64(&bytes[begin], size, size * 77), XXH3_64bits_withSeed(&bytes[begin], size, size * 77)) << size;
        }
    }
}

TEST(Checksum, DoesNotChangeWithTheLibrary)
{
    const std::vector<unsigned char> zeroes(4096);
    EXPECT_EQ(checksum64(zeroes.data(), zeroes.size(), 0), 10653106456947493306U);
}

}  // namespace
}  // namespace stillpoint

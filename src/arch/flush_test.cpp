// The flush loop and the CPU's own instructions. Invariants:
//   - flush() writes back exactly the lines that overlap the range, each once;
//   - every instruction that the CPU claims to have runs, and changes no byte;
//   - a non-temporal copy copies everything and nothing else.
// This file is also built for AArch64 and run under an emulator (tests/arch_on_aarch64).

#include <cstdint>
#include <gtest/gtest.h>
#include <vector>

#include "arch/flush.hpp"
#include "arch/native.hpp"
#include "support/counting.hpp"

namespace stillpoint::arch {
namespace {

using Lines = std::vector<std::uintptr_t>;

struct alignas(64) Memory {
    std::byte bytes[1024];
};

/// The indices of the lines that flush() wrote back.
Lines flushed(std::size_t offset, std::size_t size)
{
    static Memory memory;
    Counting counting;
    const std::size_t count = flush(counting, memory.bytes + offset, size);
    EXPECT_EQ(count, counting.written_back.size());
    Lines lines;
    for (const std::uintptr_t line : counting.written_back) {
        lines.push_back((line - reinterpret_cast<std::uintptr_t>(memory.bytes)) / 64);
        EXPECT_EQ(line % 64, 0u);
    }
    return lines;
}

TEST(Flush, WritesBackNothingForAnEmptyRange)
{
    EXPECT_EQ(flushed(0, 0), Lines{});
    EXPECT_EQ(flushed(63, 0), Lines{});
}

TEST(Flush, WritesBackOneLineForARangeInsideIt)
{
    EXPECT_EQ(flushed(0, 1), Lines{0});
    EXPECT_EQ(flushed(65, 8), Lines{1});
    EXPECT_EQ(flushed(127, 1), Lines{1});
}

TEST(Flush, WritesBackBothLinesOfATwoByteRangeThatStraddlesThem) { EXPECT_EQ(flushed(63, 2), (Lines{0, 1})); }

TEST(Flush, DoesNotTouchTheLineAfterARangeThatEndsOnALineBoundary)
{
    EXPECT_EQ(flushed(0, 64), Lines{0});
    EXPECT_EQ(flushed(32, 32), Lines{0});
    EXPECT_EQ(flushed(64, 128), (Lines{1, 2}));
}

TEST(Flush, CoversBothEndsOfAnUnalignedRange)
{
    EXPECT_EQ(flushed(10, 200), (Lines{0, 1, 2, 3}));
    EXPECT_EQ(flushed(10, 64), (Lines{0, 1}));
}

TEST(Flush, CountsTheSixtyFourLinesOfAPage) { EXPECT_EQ(lines_in(4096, 4096, 64), 64u); }

template <class Check>
void for_each_method(Check check)
{
#if defined(__x86_64__)
    for (const auto method : {X86_64::WriteBack::clflush, X86_64::WriteBack::clflushopt, X86_64::WriteBack::clwb}) {
#else
    for (const auto method : {AArch64::WriteBack::cvac, AArch64::WriteBack::cvap}) {
#endif
        if (Native::has(method)) {
            check(Native{method});
        }
    }
}

TEST(Native, EveryWriteBackInstructionOfThisCpuLeavesTheBytesAlone)
{
    for_each_method([](const Native& native) {
        Memory memory{};
        for (std::size_t i = 0; i < sizeof memory.bytes; ++i) {
            memory.bytes[i] = static_cast<std::byte>(i * 7);
        }
        EXPECT_EQ(flush(native, memory.bytes + 1, 1022), 16u);
        native.fence();
        for (std::size_t i = 0; i < sizeof memory.bytes; ++i) {
            ASSERT_EQ(memory.bytes[i], static_cast<std::byte>(i * 7)) << native.write_back_name();
        }
    });
}

TEST(Native, CopiesEveryByteOfTheRangeAndNothingBesideIt)
{
    const Native native = Native::detect();
    std::vector<std::byte> source(1024 + 1);
    for (std::size_t i = 0; i < source.size(); ++i) {
        source[i] = static_cast<std::byte>(i * 13 + 1);
    }
    for (const std::size_t size : {std::size_t{0}, std::size_t{64}, std::size_t{128}, std::size_t{896}}) {
        for (const std::size_t misalignment : {0u, 1u}) {
            Memory memory{};
            native.copy_nontemporal(memory.bytes + 64, source.data() + misalignment, size);
            native.fence();
            for (std::size_t i = 0; i < sizeof memory.bytes; ++i) {
                const bool inside = i >= 64 && i < 64 + size;
                ASSERT_EQ(memory.bytes[i], inside ? source[i - 64 + misalignment] : std::byte{})
                    << "byte " << i << " of a copy of " << size;
            }
        }
    }
}

TEST(Native, NamesTheInstructionItChose) { EXPECT_FALSE(Native::detect().write_back_name().empty()); }

}  // namespace
}  // namespace stillpoint::arch

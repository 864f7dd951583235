// Invariants of the passes without pauses before a stop:
//   - They go on until the stop has little left to copy, and until a pass was undisturbed.
//   - They end whatever the program writes meanwhile: after so many passes, or so many bytes.
//   - Where all CPUs copy the rest sooner, in the stop, there are none.
//   - A program that never pauses gets its checkpoints, and what they took is what a crash leaves.

#include <atomic>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <thread>

#include "engines/pmthreads/unpaced_passes.hpp"
#include "support/crashing_program.hpp"
#include "support/temporary_directory.hpp"

namespace stillpoint::pmthreads {
namespace {

constexpr std::uint64_t quick_ns = UnpacedPasses::undisturbed_ns / 2;
constexpr std::uint64_t disturbed_ns = UnpacedPasses::undisturbed_ns * 4;

/// All passes after one that copied `copied_bytes`. `written_during`: what the program writes while so many bytes are copied.
UnpacedPasses all_passes(std::uint64_t copied_bytes, const std::function<std::uint64_t(std::uint64_t)>& written_during)
{
    UnpacedPasses passes(copied_bytes);
    for (std::uint64_t left = written_during(copied_bytes); passes.wants_another(); left = written_during(left)) {
        passes.pass_done(left, quick_ns);
    }
    return passes;
}

TEST(UnpacedPassesTest, AreNoneWhereLittleIsLeft)
{
    EXPECT_FALSE(UnpacedPasses(0).wants_another());
    EXPECT_FALSE(UnpacedPasses(UnpacedPasses::small_rest_bytes).wants_another());
    EXPECT_TRUE(UnpacedPasses(UnpacedPasses::small_rest_bytes + 1).wants_another());
}

TEST(UnpacedPassesTest, AreNoneWhereAllCpusCopyTheRestInTheStop)
{
    EXPECT_TRUE(UnpacedPasses(UnpacedPasses::large_rest_bytes).wants_another());
    EXPECT_FALSE(UnpacedPasses(UnpacedPasses::large_rest_bytes + 1).wants_another());
}

TEST(UnpacedPassesTest, EndWhenTheRestIsSmall)
{
    const auto a_quarter = [](std::uint64_t copied) { return copied / 4; };
    EXPECT_EQ(all_passes(8 * mib, a_quarter).passes(), 3U);  // 2 MiB, 512 KiB, 128 KiB
    EXPECT_EQ(all_passes(UnpacedPasses::small_rest_bytes + 1, a_quarter).passes(), 1U);
}

TEST(UnpacedPassesTest, GoOnAfterOneInWhichTheThreadLostItsCpu)
{
    UnpacedPasses passes(mib);
    passes.pass_done(0, disturbed_ns);
    EXPECT_TRUE(passes.wants_another());
    passes.pass_done(0, quick_ns);
    EXPECT_FALSE(passes.wants_another());
}

TEST(UnpacedPassesTest, EndWhereTheProgramWritesAsFastAsTheyCopy)
{
    const auto as_much = [](std::uint64_t copied) { return copied; };
    EXPECT_EQ(all_passes(mib, as_much).passes(), UnpacedPasses::passes_max);
    // Large rests are copied a few times only.
    const std::uint64_t large = 20 * mib;
    EXPECT_EQ(all_passes(large, as_much).passes(), UnpacedPasses::copied_bytes_max / large + 1);
    UnpacedPasses disturbed(mib);
    for (; disturbed.wants_another() && disturbed.passes() < 1000;) {
        disturbed.pass_done(0, disturbed_ns);
    }
    EXPECT_EQ(disturbed.passes(), UnpacedPasses::passes_max);
}

TEST(UnpacedPassesTest, EndWhereTheProgramWritesFasterThanTheyCopy)
{
    const auto twice_as_much = [](std::uint64_t copied) { return 2 * copied; };
    const UnpacedPasses passes = all_passes(mib, twice_as_much);
    EXPECT_EQ(passes.passes(), 6U);  // 2, 4, 8, 16 and 32 MiB; the last one finds more than a pass should copy.
    EXPECT_FALSE(passes.wants_another());
}

/// Adds to pairs of words all over the table, without a pause, until the process dies.
void write_pairs(std::uint64_t* words, std::size_t count, std::atomic<std::uint64_t>& rounds)
{
    for (std::size_t i = 0;; i = (i + 8 * 61) % (count / 2)) {
        sp_fase_begin();
        ++words[i];
        test::stored(words[i]);
        ++words[i + count / 2];
        test::stored(words[i + count / 2]);
        sp_fase_end();
        rounds.fetch_add(1, std::memory_order_relaxed);
    }
}

TEST(UnpacedPassesTest, GiveCheckpointsToAProgramThatNeverPauses)
{
    constexpr std::size_t count = 2 * mib;  // 16 MiB of words
    const test::TemporaryDirectory directory;
    const std::string options = "tracker=hooks medium=memory pool_size_mb=32 interval_ms=3600000 durability=process";
    EXPECT_EQ(test::run_with_pool(directory.file("p"), options,
                                  [] {
                                      std::uint64_t* const words = test::durable_words(count);
                                      std::atomic<std::uint64_t> rounds{0};
                                      const std::thread writer([&] { write_pairs(words, count, rounds); });
                                      for (int i = 0; i < 4; ++i) {
                                          const std::uint64_t before = rounds.load();
                                          while (rounds.load() < before + 50'000) {
                                              std::this_thread::yield();
                                          }
                                          if (sp_checkpoint() != SP_OK) {
                                              return 1;
                                          }
                                      }
                                      test::crash();
                                      return 0;
                                  }),
              test::killed);
    EXPECT_EQ(test::run_with_pool(directory.file("p"), options,
                                  [] {
                                      const std::uint64_t* const words = test::durable_words(count);
                                      std::uint64_t written = 0;
                                      for (std::size_t i = 0; i < count / 2; ++i) {
                                          written += words[i];
                                          if (words[i] != words[i + count / 2]) {
                                              return 1;
                                          }
                                      }
                                      return written >= 200'000 ? 0 : 2;
                                  }),
              0);
}

}  // namespace
}  // namespace stillpoint::pmthreads

// An engine that keeps an undo log is told of every store to the heap's tables before it happens: rolled back, the tables are what they
// were, and a heap that is attached to them finds the blocks of that moment.

#include <algorithm>
#include <random>
#include <vector>

#include "support/test_image.hpp"
#include "support/undo_log.hpp"

namespace stillpoint {
namespace {

constexpr std::size_t sizes[] = {16, 48, 500, 3000};
constexpr int blocks_per_size = 40;

void allocate_and_free(Heap& heap, std::vector<void*>& blocks, unsigned seed)
{
    std::mt19937 random(seed);
    for (int round = 0; round < 2000; ++round) {
        void*& block = blocks[random() % blocks.size()];
        if (block != nullptr) {
            heap.deallocate(block);
            block = nullptr;
        } else {
            block = heap.allocate(sizes[random() % std::size(sizes)]);
            ASSERT_NE(block, nullptr);
        }
    }
}

TEST(HeapUndo, RollsBackTheMarksOfBlocks)
{
    TestImage image(64 * mib);
    Heap& heap = image.attach();
    std::vector<void*> blocks;
    for (const std::size_t size : sizes) {
        for (int i = 0; i < blocks_per_size; ++i) {
            blocks.push_back(heap.allocate(size));
        }
    }
    allocate_and_free(heap, blocks, 1);  // Every size has its spans, whose entries no later allocation changes.
    const std::vector<std::byte> before = image.snapshot();
    const std::size_t live = static_cast<std::size_t>(std::ranges::count_if(blocks, [](void* block) { return block != nullptr; }));
    {
        test::UndoLog log;
        allocate_and_free(heap, blocks, 2);
        EXPECT_GT(log.entries(), 1000U);
        EXPECT_NE(image.snapshot(), before);
        log.roll_back();
        EXPECT_EQ(image.snapshot(), before);
    }
    EXPECT_EQ(image.crash_back_to(before).statistics().live_blocks, live);
}

TEST(HeapUndo, RollsBackSpansLargeRunsAndClearedMemory)
{
    TestImage image(64 * mib);
    Heap& heap = image.attach();
    void* const kept = heap.allocate(100);
    ASSERT_NE(kept, nullptr);
    const std::vector<std::byte> before = image.snapshot();
    {
        test::UndoLog log;
        std::vector<void*> blocks(200, nullptr);
        allocate_and_free(heap, blocks, 3);  // Takes spans for each size.
        void* run = heap.allocate(3 * mib);
        ASSERT_NE(run, nullptr);
        run = heap.reallocate(run, 5 * mib);
        run = heap.reallocate(run, 1 * mib);
        ASSERT_NE(run, nullptr);
        heap.deallocate(run);
        ASSERT_NE(heap.allocate_aligned(4096, 20'000), nullptr);
        ASSERT_NE(heap.allocate_zeroed(100'000), nullptr);
        EXPECT_NE(image.snapshot(), before);
        log.roll_back();
        EXPECT_EQ(image.snapshot(), before);
    }
    EXPECT_EQ(image.crash_back_to(before).statistics().live_blocks, 1U);
}

}  // namespace
}  // namespace stillpoint

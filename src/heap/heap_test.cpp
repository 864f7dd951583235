// Invariants: blocks are aligned to 16 and to what was asked; live blocks never overlap and keep their
// contents; memory freed is memory that can be allocated again; every failure says why.

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <set>

#include "heap/size_classes.hpp"
#include "support/test_image.hpp"

namespace stillpoint {
namespace {

using heap::class_count;
using heap::size_classes;

bool is_aligned(const void* block, std::size_t alignment) { return reinterpret_cast<std::uintptr_t>(block) % alignment == 0; }

TEST(SizeClasses, GrowByAtMostAQuarterOfTheBlockUpToFourKib)
{
    for (std::size_t size = 1; size <= heap::small_bytes_max; ++size) {
        const std::size_t block = size_classes[heap::class_for(size)].block_bytes;
        ASSERT_GE(block, size);
        if (size > 64) {
            ASSERT_LE(block - size, size <= 4096 ? block / 4 : block * 35 / 100) << size;
        }
    }
}

TEST(SizeClasses, ReciprocalFindsTheIndexOfEveryBlock)
{
    for (std::uint32_t c = 1; c <= class_count; ++c) {
        const auto& k = size_classes[c];
        EXPECT_EQ(k.first_block + k.blocks * k.block_bytes, heap::span_bytes);
        EXPECT_EQ(k.first_block % 16, 0u);
        for (std::uint32_t offset = 0; offset < heap::span_bytes; offset += 16) {
            const std::uint64_t index = (std::uint64_t{offset / 16} * k.reciprocal) >> heap::reciprocal_shift;
            ASSERT_EQ(index, offset / k.block_bytes) << k.block_bytes;
        }
    }
}

TEST(SizeClasses, MarksFitInFrontOfTheFirstBlock)
{
    for (std::uint32_t c = 1; c <= class_count; ++c) {
        if (heap::has_coarse_marks(size_classes[c])) {
            EXPECT_LE(size_classes[c].blocks, heap::coarse_marks_per_span);
        } else {
            EXPECT_GE(size_classes[c].first_block, (size_classes[c].blocks + 63) / 64 * 64);
        }
    }
}

TEST(Heap, FindsTheLiveBlockThatAnAddressLiesIn)
{
    TestImage image(64 * mib);
    Heap& heap = image.attach();
    for (const std::size_t size : {1u, 100u, 3000u, 4096u, 32768u, 200'000u}) {
        auto* const block = static_cast<std::byte*>(heap.allocate(size));
        for (const std::size_t inside : {std::size_t{0}, size / 2, size - 1}) {
            const Heap::Block found = heap.find_block(block + inside);
            EXPECT_EQ(found.begin, block) << size;
            EXPECT_EQ(found.usable_bytes, heap.usable_size(block)) << size;
        }
        EXPECT_NE(heap.find_block(block - 1).begin, block);
        heap.deallocate(block);
        EXPECT_EQ(heap.find_block(block).begin, nullptr) << size;
    }
    EXPECT_EQ(heap.find_block(&image).begin, nullptr);
    EXPECT_EQ(heap.find_block(image.options.image_base).begin, nullptr);
}

TEST(Heap, GivesAlignedBlocksThatAreLargeEnough)
{
    TestImage image(64 * mib);
    Heap& heap = image.attach();
    for (std::size_t size = 0; size < 200'000; size += size < 5000 ? 1 : 997) {
        void* block = heap.allocate(size);
        ASSERT_NE(block, nullptr);
        ASSERT_TRUE(is_aligned(block, 16));
        ASSERT_GE(heap.usable_size(block), size);
        std::memset(block, 0xa5, heap.usable_size(block));
        heap.deallocate(block);
    }
}

TEST(Heap, HonoursEveryAlignmentUpToASpan)
{
    TestImage image(64 * mib);
    Heap& heap = image.attach();
    for (std::size_t alignment = 1; alignment <= Heap::span_bytes; alignment *= 2) {
        for (const std::size_t size : std::initializer_list<std::size_t>{0, 1, 24, 100, 1000, 4096, 5000, 20'000, 40'000, 100'000}) {
            void* first = heap.allocate_aligned(alignment, size);
            void* second = heap.allocate_aligned(alignment, size);
            ASSERT_NE(second, nullptr);
            ASSERT_TRUE(is_aligned(first, alignment) && is_aligned(second, alignment)) << alignment << " " << size;
            ASSERT_GE(heap.usable_size(first), size);
            heap.deallocate(first);
            heap.deallocate(second);
        }
    }
    for (const std::size_t bad : {std::size_t{0}, std::size_t{3}, std::size_t{128 * kib}}) {
        EXPECT_EQ(heap.allocate_aligned(bad, 16), nullptr);
        EXPECT_EQ(Heap::last_failure().code, SP_E_INVALID_ARGUMENT);
    }
}

TEST(Heap, ZeroesMemoryThatWasUsedBefore)
{
    TestImage image(64 * mib);
    Heap& heap = image.attach();
    for (const std::size_t size : std::initializer_list<std::size_t>{16, 100, 4000, 4096, 30'000, 70'000, 1'000'000}) {
        for (int round = 0; round < 3; ++round) {
            auto* block = static_cast<unsigned char*>(heap.allocate_zeroed(size));
            ASSERT_TRUE(std::all_of(block, block + size, [](unsigned char byte) { return byte == 0; })) << size;
            std::memset(block, 0xff, size);
            heap.deallocate(block);
        }
    }
}

TEST(Heap, ReallocateKeepsContentsAcrossEveryKindOfBlock)
{
    TestImage image(64 * mib);
    Heap& heap = image.attach();
    std::mt19937 random(7);
    unsigned char* block = nullptr;
    std::size_t size = 0;
    for (int step = 0; step < 2000; ++step) {
        const std::size_t wanted = random() % (step % 3 == 0 ? 500'000 : 5000) + 1;
        auto* moved = static_cast<unsigned char*>(heap.reallocate(block, wanted));
        ASSERT_NE(moved, nullptr);
        for (std::size_t i = 0; i < std::min(size, wanted); ++i) {
            ASSERT_EQ(moved[i], static_cast<unsigned char>(i * 7 + size)) << step;
        }
        block = moved;
        size = wanted;
        for (std::size_t i = 0; i < size; ++i) {
            block[i] = static_cast<unsigned char>(i * 7 + size);
        }
    }
    heap.deallocate(block);
    EXPECT_EQ(heap.statistics().live_blocks, 0u);
}

TEST(Heap, ReallocateGrowsAndShrinksALargeRunInPlaceWhereItsNeighboursAreFree)
{
    TestImage image(64 * mib);
    Heap& heap = image.attach();
    void* run = heap.allocate(200'000);
    EXPECT_EQ(heap.reallocate(run, 2'000'000), run);
    void* behind = heap.allocate(200'000);
    EXPECT_EQ(heap.reallocate(run, 100'000), run);
    EXPECT_EQ(heap.reallocate(run, 2'000'000), run) << "the tail it gave back is free again";
    EXPECT_NE(heap.reallocate(run, 4'000'000), run) << "the block behind is in the way";
    heap.deallocate(behind);
}

TEST(Heap, RandomUseNeverOverlapsAndNeverLosesContents)
{
    TestImage image(4 * mib, 512 * mib);
    Heap& heap = image.attach();
    struct Shadow {
        std::size_t size;
        unsigned char fill;
    };
    std::map<unsigned char*, Shadow> live;
    std::mt19937 random(42);
    const auto check_and_free = [&](std::map<unsigned char*, Shadow>::iterator it) {
        const auto [size, fill] = it->second;
        ASSERT_TRUE(std::all_of(it->first, it->first + size, [f = fill](unsigned char byte) { return byte == f; }));
        heap.deallocate(it->first);
        live.erase(it);
    };
    for (int step = 0; step < 60'000; ++step) {
        if (live.size() > 3000 || (!live.empty() && random() % 5 < 2)) {
            auto victim = live.lower_bound(image.layout().spans_offset + reinterpret_cast<unsigned char*>(window_base) +
                                           random() % (image.options.image_bytes));
            check_and_free(victim == live.end() ? live.begin() : victim);
            continue;
        }
        const auto kind = random() % 100;
        const std::size_t size = kind < 80 ? random() % 512 + 1 : kind < 98 ? random() % 20'000 + 1 : random() % 300'000 + 1;
        auto* block = static_cast<unsigned char*>(heap.allocate(size));
        ASSERT_NE(block, nullptr) << Heap::last_failure().message;
        const auto next = live.lower_bound(block);
        ASSERT_TRUE(next == live.end() || block + heap.usable_size(block) <= next->first);
        ASSERT_TRUE(next == live.begin() || std::prev(next)->first + std::prev(next)->second.size <= block);
        const auto fill = static_cast<unsigned char>(random());
        std::memset(block, fill, size);
        live[block] = {size, fill};
    }
    EXPECT_EQ(heap.statistics().live_blocks, live.size());
    ASSERT_TRUE(Heap::check(image.options));
    while (!live.empty()) {
        check_and_free(live.begin());
    }
    const auto after = heap.statistics();
    EXPECT_EQ(after.allocated_bytes, 0u);
    EXPECT_EQ(after.free_bytes, after.heap_bytes);
}

TEST(Heap, StatisticsCountLiveBlocksAndTheirClasses)
{
    TestImage image(64 * mib);
    Heap& heap = image.attach();
    const auto before = heap.statistics();
    EXPECT_EQ(before.free_bytes, before.heap_bytes);
    void* small = heap.allocate(100);
    void* large = heap.allocate(100'000);
    const auto during = heap.statistics();
    EXPECT_EQ(during.live_blocks, 2u);
    EXPECT_EQ(during.allocated_bytes, 112u + 131072u);
    heap.deallocate(small);
    heap.deallocate(large);
    EXPECT_EQ(heap.statistics().free_bytes, before.free_bytes);
}

TEST(Heap, ShowsEveryLiveBlockAndNoFreeOne)
{
    TestImage image(4 * mib);
    Heap& heap = image.attach();
    std::map<const void*, std::size_t> expected;
    std::vector<void*> blocks;
    for (const std::size_t size : {16UL, 17UL, 1000UL, 5000UL, 40000UL, 200000UL}) {
        for (int repeat = 0; repeat < 3; ++repeat) {
            blocks.push_back(heap.allocate(size));
            expected[blocks.back()] = heap.usable_size(blocks.back());
        }
    }
    for (std::size_t index = 0; index < blocks.size(); index += 2) {
        expected.erase(blocks[index]);
        heap.deallocate(blocks[index]);
    }
    std::map<const void*, std::size_t> shown;
    heap.visit_live_blocks([](void* context, const std::byte* block,
                              std::size_t bytes) { (*static_cast<std::map<const void*, std::size_t>*>(context))[block] = bytes; },
                           &shown);
    EXPECT_EQ(shown, expected);
}

TEST(Heap, GrowsTheImageWhenNoRunFits)
{
    TestImage image(4 * mib, 256 * mib);
    Heap& heap = image.attach();
    std::vector<void*> blocks;
    for (int i = 0; i < 200; ++i) {
        blocks.push_back(heap.allocate(mib - 1));
        ASSERT_NE(blocks.back(), nullptr) << Heap::last_failure().message;
    }
    EXPECT_GT(image.growths, 0u);
    EXPECT_LT(image.growths, 30u) << "each growth is a segment of the pool: they must be few";
    EXPECT_EQ(std::set<void*>(blocks.begin(), blocks.end()).size(), blocks.size());
    ASSERT_TRUE(Heap::check(image.options));
}

TEST(Heap, GrowsFromAnImageThatHasNoRoomForASpan)
{
    TestImage image(256 * kib, 16 * gib);
    Heap& heap = image.attach();
    EXPECT_EQ(heap.statistics().heap_bytes, 0u);
    void* block = heap.allocate(100);
    ASSERT_NE(block, nullptr) << Heap::last_failure().message;
    std::memset(block, 1, 100);
}

TEST(Heap, SaysThatThePoolIsFullAndRecoversWhenMemoryIsFreed)
{
    TestImage image(4 * mib, 8 * mib);
    Heap& heap = image.attach();
    for (const std::size_t size : std::initializer_list<std::size_t>{24, 1000, 30'000, 60'000, 1'000'000}) {
        std::vector<void*> blocks;
        for (void* block = heap.allocate(size); block != nullptr; block = heap.allocate(size)) {
            blocks.push_back(block);
        }
        EXPECT_EQ(Heap::last_failure().code, SP_E_POOL_FULL);
        const auto full = heap.statistics();
        EXPECT_LT(full.free_bytes, full.heap_bytes / 4) << size;
        for (void* block : blocks) {
            heap.deallocate(block);
        }
        EXPECT_EQ(heap.statistics().free_bytes, heap.statistics().heap_bytes);
    }
    EXPECT_EQ(heap.allocate(SIZE_MAX), nullptr);
    EXPECT_EQ(heap.allocate(9 * mib), nullptr);
    EXPECT_EQ(Heap::last_failure().code, SP_E_POOL_FULL);
}

TEST(Heap, PassesOnWhyTheImageCouldNotGrow)
{
    TestImage image(4 * mib, 64 * mib);
    Heap& heap = image.attach();
    image.refuses_to_grow = true;
    EXPECT_EQ(heap.allocate(32 * mib), nullptr);
    EXPECT_EQ(Heap::last_failure().code, SP_E_NO_SPACE);
    image.refuses_to_grow = false;
    EXPECT_NE(heap.allocate(32 * mib), nullptr);
}

TEST(Heap, MemoryOfOneClassServesAnotherOnceItIsFree)
{
    TestImage image(8 * mib);
    Heap& heap = image.attach();
    for (const std::size_t size : std::initializer_list<std::size_t>{16, 48, 3000, 8192, 200'000, 64}) {
        std::vector<void*> blocks;
        std::size_t total = 0;
        while (total < 6 * mib) {
            void* block = heap.allocate(size);
            ASSERT_NE(block, nullptr) << size << " after " << total << ": " << Heap::last_failure().message;
            total += heap.usable_size(block);
            std::memset(block, 0xee, size);
            blocks.push_back(block);
        }
        for (void* block : blocks) {
            heap.deallocate(block);
        }
    }
}

TEST(Heap, KeepsWhyACallFailedWhenTheThreadGivesItsCacheBack)
{
    TestImage image(4 * mib);
    Heap& heap = image.attach();
    EXPECT_EQ(heap.allocate(5 * mib), nullptr);
    heap.flush_thread_cache();
    EXPECT_EQ(Heap::last_failure().code, SP_E_POOL_FULL);
}

TEST(Heap, FreeingNullptrDoesNothing)
{
    TestImage image(4 * mib);
    Heap& heap = image.attach();
    heap.deallocate(nullptr);
    EXPECT_EQ(heap.usable_size(nullptr), 0u);
}

using HeapDeathTest = testing::Test;

TEST(HeapDeathTest, EndsTheProgramAtAPointerThatIsNoLiveBlock)
{
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    TestImage image(64 * mib);
    Heap& heap = image.attach();
    auto* small = static_cast<std::byte*>(heap.allocate(100));
    auto* large = static_cast<std::byte*>(heap.allocate(200'000));
    int local = 0;
    EXPECT_DEATH(heap.deallocate(small + 16), "middle of a block");
    EXPECT_DEATH(heap.deallocate(small + 8), "middle of a block");
    EXPECT_DEATH(heap.deallocate(small - reinterpret_cast<std::uintptr_t>(small) % Heap::span_bytes), "middle of a block");
    EXPECT_DEATH(heap.deallocate(large + Heap::span_bytes), "large block");
    EXPECT_DEATH(heap.deallocate(large + 16), "middle of a block");
    EXPECT_DEATH(heap.deallocate(&local), "not an address of durable memory");
    EXPECT_DEATH(heap.deallocate(image.options.image_base), "not an address of durable memory");
    heap.deallocate(small);
    heap.deallocate(large);
    EXPECT_DEATH(heap.deallocate(small), "freed twice");
    EXPECT_DEATH(heap.deallocate(large), "freed before");
    EXPECT_DEATH((void)heap.reallocate(small, 10), "realloc");
}

}  // namespace
}  // namespace stillpoint

// Invariants: after a crash the heap is the heap of the recovered epoch, whatever threads had
// cached or done since; a table that breaks a rule is refused, never followed.

#include <cstring>
#include <random>
#include <thread>

#include "heap/size_classes.hpp"
#include "support/test_image.hpp"

namespace stillpoint {
namespace {

/// Live blocks that a program would reach from its roots, with contents to recognise.
struct Survivors {
    std::vector<std::pair<unsigned char*, std::size_t>> blocks;

    void add(Heap& heap, std::size_t size)
    {
        auto* block = static_cast<unsigned char*>(heap.allocate(size));
        ASSERT_NE(block, nullptr);
        std::memset(block, static_cast<int>(size % 251), size);
        blocks.emplace_back(block, size);
    }
    void expect_intact() const
    {
        for (const auto& [block, size] : blocks) {
            for (std::size_t i = 0; i < size; ++i) {
                ASSERT_EQ(block[i], size % 251);
            }
        }
    }
};

std::size_t random_size(std::mt19937& random)
{
    const auto kind = random() % 100;
    return kind < 70 ? random() % 256 + 1 : kind < 97 ? random() % 12'000 + 1 : random() % 400'000 + 1;
}

TEST(HeapRecovery, AllocateAndCrashLoopsEndWithTheSameFreeBytes)
{
    TestImage image(64 * mib);
    Heap* heap = &image.attach();
    std::mt19937 random(1);
    Survivors kept;
    for (int i = 0; i < 500; ++i) {
        kept.add(*heap, random_size(random));
    }
    const auto snapshot = image.snapshot();
    const auto before = heap->statistics();
    for (int crash = 0; crash < 20; ++crash) {
        Survivors lost;
        for (int i = 0; i < 500; ++i) {
            lost.add(*heap, random_size(random));
        }
        for (std::size_t i = 0; i < kept.blocks.size(); i += 2) {
            heap->deallocate(kept.blocks[i].first);  // Undone by the crash.
        }
        heap = &image.crash_back_to(snapshot);
        kept.expect_intact();
        const auto after = heap->statistics();
        ASSERT_EQ(after.free_bytes, before.free_bytes);
        ASSERT_EQ(after.live_blocks, before.live_blocks);
        ASSERT_EQ(after.allocated_bytes, before.allocated_bytes);
        ASSERT_TRUE(Heap::check(image.options));
    }
    for (const auto& [block, size] : kept.blocks) {
        heap->deallocate(block);
    }
    EXPECT_EQ(heap->statistics().free_bytes, heap->statistics().heap_bytes);
}

TEST(HeapRecovery, MemoryCachedByThreadsThatDiedInTheCrashIsFree)
{
    TestImage image(16 * mib);
    Heap* heap = &image.attach();
    for (int crash = 0; crash < 30; ++crash) {
        for (int t = 0; t < 2; ++t) {
            std::thread([&] {
                for (std::size_t size = 16; size <= 32 * kib; size *= 2) {
                    heap->deallocate(heap->allocate(size));
                }
                heap->flush_thread_cache();
            }).join();
        }
        heap = &image.crash_back_to(image.snapshot());
        ASSERT_EQ(heap->statistics().free_bytes, heap->statistics().heap_bytes);
    }
    // Free for real: nearly all of it can be allocated in another size.
    std::size_t total = 0;
    while (heap->allocate(200 * kib) != nullptr) {
        total += 256 * kib;
    }
    EXPECT_GT(total, heap->statistics().heap_bytes - 512 * kib);
}

TEST(HeapRecovery, BlocksAllocatedAfterRecoveryNeverOverlapSurvivors)
{
    TestImage image(32 * mib);
    Heap* heap = &image.attach();
    std::mt19937 random(3);
    Survivors live;
    for (int round = 0; round < 15; ++round) {
        for (int i = 0; i < 300; ++i) {
            live.add(*heap, random_size(random) % 9000 + 1);
        }
        // Frees right after recovery hit spans that have not been examined yet.
        for (int i = 0; i < 200; ++i) {
            const std::size_t victim = random() % live.blocks.size();
            heap->deallocate(live.blocks[victim].first);
            live.blocks[victim] = live.blocks.back();
            live.blocks.pop_back();
        }
        live.expect_intact();
        ASSERT_EQ(heap->statistics().live_blocks, live.blocks.size());
        heap = &image.crash_back_to(image.snapshot());
        live.expect_intact();
        ASSERT_EQ(heap->statistics().live_blocks, live.blocks.size());
    }
}

TEST(HeapRecovery, ACrashAfterGrowthIsFreeMemoryToo)
{
    TestImage image(4 * mib, 128 * mib);
    Heap* heap = &image.attach();
    const auto snapshot = image.snapshot();
    ASSERT_NE(heap->allocate(20 * mib), nullptr);
    heap = &image.crash_back_to(snapshot);
    EXPECT_GE(heap->statistics().heap_bytes, 20 * mib);
    EXPECT_EQ(heap->statistics().free_bytes, heap->statistics().heap_bytes);
}

TEST(HeapRecovery, EmptySpansOfOneClassServeOthersBeforeTheImageGrows)
{
    TestImage image(8 * mib, 64 * mib);
    Heap* heap = &image.attach();
    std::vector<void*> blocks;
    for (std::size_t total = 0; total < 6 * mib; total += 64) {
        blocks.push_back(heap->allocate(64));
    }
    for (void* block : blocks) {
        heap->deallocate(block);
    }
    heap = &image.crash_back_to(image.snapshot());
    ASSERT_NE(heap->allocate(5 * mib), nullptr);
    EXPECT_EQ(image.growths, 0u);
}

TEST(HeapRecovery, RefusesASpanTableThatBreaksARule)
{
    TestImage image(16 * mib);
    Heap& heap = image.attach();
    ASSERT_NE(heap.allocate(100), nullptr);       // span 0
    ASSERT_NE(heap.allocate(200'000), nullptr);   // spans 1 to 4
    image.detach();
    const auto count = static_cast<std::uint32_t>(image.layout().spans_in(16 * mib));
    const struct {
        std::uint64_t span;
        std::uint32_t word;
        const char* finding;
    } damages[] = {
        {0, heap::SpanEntry::small(40).word, "span 0 names size class 40"},
        {0, heap::SpanEntry::small(0).word, "span 0 names size class 0"},
        {1, heap::SpanEntry::large(0).word, "span 1 begins a run of 0"},
        {1, heap::SpanEntry::large(count).word, "span 1 begins a run of"},
        {1, heap::SpanEntry::large(heap::SpanEntry::payload_mask).word, "span 1 begins a run of"},
        {3, heap::SpanEntry::small(1).word, "span 3 is in use inside the run"},
        {7, 0xc0000001u, "span 7 has the meaningless entry"},
        {7, 5, "span 7 has the meaningless entry"},
    };
    for (const auto& [span, word, finding] : damages) {
        const std::uint32_t good = std::exchange(image.span_table()[span], word);
        const auto attached = Heap::attach(image.options);
        ASSERT_FALSE(attached);
        EXPECT_EQ(attached.error().code, SP_E_POOL_CORRUPT);
        EXPECT_NE(attached.error().text().find(finding), std::string_view::npos) << attached.error().message;
        const auto checked = Heap::check(image.options);
        ASSERT_FALSE(checked);
        EXPECT_NE(checked.error().text().find(finding), std::string_view::npos) << checked.error().message;
        image.span_table()[span] = good;
    }
    EXPECT_TRUE(Heap::attach(image.options));
    heap.detach();
}

TEST(HeapRecovery, CheckFindsAnAllocationByteThatIsNeitherZeroNorOne)
{
    TestImage image(16 * mib);
    Heap& heap = image.attach();
    ASSERT_NE(heap.allocate(64), nullptr);
    ASSERT_TRUE(Heap::check(image.options));
    image.detach();
    std::byte* marks = image.options.image_base + image.layout().spans_offset;
    marks[5] = std::byte{2};
    const auto checked = Heap::check(image.options);
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().code, SP_E_POOL_CORRUPT);
    EXPECT_NE(checked.error().text().find("span 0: block 5"), std::string_view::npos) << checked.error().message;
}

TEST(HeapRecovery, ARandomlyDamagedTableIsRefusedOrHarmless)
{
    TestImage image(8 * mib);
    std::mt19937 random(11);
    for (int round = 0; round < 300; ++round) {
        std::memset(image.span_table(), 0, page_bytes);
        for (int i = 0; i < 3; ++i) {
            const auto kind = static_cast<std::uint32_t>(random() % 4);
            image.span_table()[random() % 100] = kind << 30 | static_cast<std::uint32_t>(random() % (round % 2 == 0 ? 50u : 1u << 30));
        }
        for (int i = 0; i < 4096; ++i) {
            image.options.image_base[image.layout().spans_offset + random() % (6 * mib)] = std::byte(random());
        }
        if (auto attached = Heap::attach(image.options); attached) {
            for (std::size_t size = 1; size < 300'000; size = size * 3 + 1) {
                if (void* block = (*attached)->allocate(size); block != nullptr) {
                    std::memset(block, 1, size);
                    (*attached)->deallocate(block);
                }
            }
            (void)(*attached)->statistics();
            (*attached)->detach();
        }
    }
}

}  // namespace
}  // namespace stillpoint

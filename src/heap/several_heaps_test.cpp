// Invariants: heaps that are attached at once share nothing: blocks, marks, tags, caches and delayed frees are each heap's own; one is
// detached while the others are in use; the next heap with its number meets nothing of it; a thread that ends loses nothing of any heap.

#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "heap/heap_state.hpp"
#include "support/test_image.hpp"

namespace stillpoint {
namespace {

/// Images beside each other.
std::uintptr_t base_of(std::size_t image) { return window_base + image * 4 * gib; }

bool lies_in(const TestImage& image, const void* block)
{
    const auto* const address = static_cast<const std::byte*>(block);
    return address >= image.options.image_base && address < image.options.image_base + image.options.image_bytes;
}

std::size_t number_of(const Heap& heap) { return heap::state_of(heap).number; }

/// One thread, which lives from one step of a test to the next.
class Worker {
public:
    ~Worker()
    {
        step_ = nullptr;
        turn_.arrive_and_wait();
        thread_.join();
    }
    void run(const std::function<void()>& step)
    {
        step_ = &step;
        turn_.arrive_and_wait();
        turn_.arrive_and_wait();
    }

private:
    std::barrier<> turn_{2};
    const std::function<void()>* step_ = nullptr;
    std::thread thread_{[this] {
        for (;;) {
            turn_.arrive_and_wait();
            if (step_ == nullptr) {
                return;
            }
            (*step_)();
            turn_.arrive_and_wait();
        }
    }};
};

TEST(SeveralHeaps, ThreadsUseTwoAtOnceAndEachKeepsItsOwnBlocks)
{
    TestImage images[] = {TestImage(4 * mib, gib, base_of(0)), TestImage(4 * mib, gib, base_of(1))};
    Heap* const heaps[] = {&images[0].attach(), &images[1].attach()};
    struct Live {
        unsigned char* block;
        std::size_t size;
        unsigned heap;
    };
    std::vector<std::vector<Live>> kept(3, std::vector<Live>(300));
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < kept.size(); ++t) {
        threads.emplace_back([&, t] {
            std::mt19937 random(t);
            for (int step = 0; step < 10'000; ++step) {
                auto& [block, size, heap] = kept[t][random() % kept[t].size()];
                for (std::size_t i = 0; i < size; i += 7) {
                    ASSERT_EQ(block[i], t + 1);
                }
                heaps[heap]->deallocate(block);
                heap = random() % 2;
                size = random() % 100 == 0 ? random() % 100'000 + 1 : random() % 600 + 1;
                block = static_cast<unsigned char*>(heaps[heap]->allocate(size));
                ASSERT_NE(block, nullptr);
                ASSERT_TRUE(reinterpret_cast<std::uintptr_t>(block) >= base_of(heap) &&
                            reinterpret_cast<std::uintptr_t>(block) < base_of(heap) + gib);
                std::memset(block, static_cast<int>(t + 1), size);
            }
            for (Heap* const heap : heaps) {
                heap->flush_thread_cache();
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    std::uint64_t live[2] = {};
    for (const auto& blocks : kept) {
        for (const Live& each : blocks) {
            live[each.heap] += each.block != nullptr;
        }
    }
    for (unsigned which = 0; which < 2; ++which) {
        EXPECT_EQ(heaps[which]->statistics().live_blocks, live[which]);
        EXPECT_TRUE(Heap::check(images[which].options));
    }
    for (const auto& blocks : kept) {
        for (const Live& each : blocks) {
            heaps[each.heap]->deallocate(each.block);
        }
    }
    for (const Heap* const heap : heaps) {
        EXPECT_EQ(heap->statistics().free_bytes, heap->statistics().heap_bytes);
    }
}

TEST(SeveralHeaps, OneGoesOnWhileAnotherIsDetachedAndAttachedAgain)
{
    TestImage kept_image(16 * mib, 0, base_of(0));
    TestImage image(16 * mib, 0, base_of(1));
    Heap& kept = kept_image.attach();
    Heap* heap = &image.attach();
    std::vector<unsigned char*> blocks;
    std::vector<void*> of_the_kept;
    for (int i = 0; i < 3000; ++i) {
        blocks.push_back(static_cast<unsigned char*>(heap->allocate(500)));
        std::memset(blocks.back(), i % 256, 500);
        of_the_kept.push_back(kept.allocate(500));
    }
    for (int round = 0; round < 5; ++round) {
        image.detach();
        for (void*& block : of_the_kept) {
            kept.deallocate(block);
            block = kept.allocate(500);
            ASSERT_TRUE(lies_in(kept_image, block));
        }
        EXPECT_EQ(kept.statistics().live_blocks, of_the_kept.size());
        heap = &image.attach();
        EXPECT_EQ(heap->statistics().live_blocks, blocks.size());
        for (std::size_t i = 0; i < blocks.size(); ++i) {
            ASSERT_EQ(heap->find_block(blocks[i] + 100).begin, reinterpret_cast<std::byte*>(blocks[i]));
            ASSERT_TRUE(blocks[i][0] == i % 256 && blocks[i][499] == i % 256);
        }
    }
    for (unsigned char* block : blocks) {
        heap->deallocate(block);
    }
    EXPECT_EQ(heap->statistics().live_blocks, 0u);
    EXPECT_EQ(kept.statistics().live_blocks, of_the_kept.size());
}

TEST(SeveralHeaps, ABlockFreedByAnotherThreadGoesBackToItsHeap)
{
    TestImage images[] = {TestImage(4 * mib, 0, base_of(0)),
                          TestImage(4 * mib, 0, base_of(1))};  // At their maximum: a leak of any rate fails the test.
    Heap* const heaps[] = {&images[0].attach(), &images[1].attach()};
    Worker other;
    for (int round = 0; round < 50; ++round) {
        std::vector<void*> blocks[2];
        for (int i = 0; i < 2000; ++i) {
            for (unsigned which = 0; which < 2; ++which) {
                blocks[which].push_back(heaps[which]->allocate(1000));
                ASSERT_TRUE(lies_in(images[which], blocks[which].back())) << round;
            }
        }
        other.run([&] {
            for (std::size_t i = 0; i < blocks[0].size(); ++i) {
                heaps[0]->deallocate(blocks[0][i]);
                heaps[1]->deallocate(blocks[1][i]);
            }
        });
        ASSERT_EQ(heaps[0]->statistics().live_blocks, 0u);
        ASSERT_EQ(heaps[1]->statistics().live_blocks, 0u);
    }
}

TEST(SeveralHeaps, WhatThreadsThatDiedWithoutFlushingHadCachedIsReclaimedInEach)
{
    TestImage images[] = {TestImage(8 * mib, 0, base_of(0)), TestImage(8 * mib, 0, base_of(1))};
    Heap* const heaps[] = {&images[0].attach(), &images[1].attach()};
    for (int i = 0; i < 150; ++i) {
        std::thread([&heaps] {
            for (std::size_t size = 1024; size <= 32 * kib; size *= 2) {
                heaps[0]->deallocate(heaps[0]->allocate(size));
                heaps[1]->deallocate(heaps[1]->allocate(size));
            }
        }).join();
    }
    for (Heap* const heap : heaps) {
        std::size_t total = 0;
        // The kernel forgets a thread a little after join() has returned.
        for (int tries = 0; total < heap->statistics().heap_bytes && tries < 200; ++tries) {
            while (heap->allocate(60 * kib) != nullptr) {
                total += 64 * kib;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        EXPECT_EQ(total, heap->statistics().heap_bytes);
    }
}

TEST(SeveralHeaps, AThreadMeetsNoStaleBlockWhenANumberIsReused)
{
    TestImage kept_image(16 * mib, 0, base_of(0));
    TestImage images[] = {TestImage(16 * mib, 0, base_of(1)), TestImage(16 * mib, 0, base_of(2))};
    Heap& kept = kept_image.attach();
    const std::size_t number = number_of(images[0].attach());
    images[0].detach();
    Worker other;
    for (int round = 0; round < 6; ++round) {
        TestImage& image = images[round % 2];
        Heap& heap = image.attach();
        ASSERT_EQ(number_of(heap), number);
        const std::uint64_t live_before = heap.statistics().live_blocks;
        const auto use = [&] {
            std::vector<void*> blocks;
            for (int i = 0; i < 100; ++i) {
                blocks.push_back(heap.allocate(100));
                ASSERT_TRUE(lies_in(image, blocks.back()));
                ASSERT_TRUE(lies_in(kept_image, kept.allocate(10)));
            }
            for (std::size_t i = 0; i < blocks.size() - 10; ++i) {
                heap.deallocate(blocks[i]);  // They are in the thread's cache when the heap is detached.
            }
        };
        use();
        other.run(use);
        EXPECT_EQ(heap.statistics().live_blocks, live_before + 20);
        image.detach();
        EXPECT_TRUE(Heap::check(image.options));
    }
    EXPECT_EQ(kept.statistics().live_blocks, 1200u);
}

TEST(SeveralHeaps, SixteenAreAttachedAtOnceAndTheNextIsRefused)
{
    std::vector<std::unique_ptr<TestImage>> images;
    for (std::size_t i = 0; i <= Heap::heaps_max; ++i) {
        images.push_back(std::make_unique<TestImage>(4 * mib, 0, base_of(i)));
    }
    for (std::size_t i = 0; i < Heap::heaps_max; ++i) {
        ASSERT_TRUE(lies_in(*images[i], images[i]->attach().allocate(100)));
    }
    const auto refused = Heap::attach(images.back()->options);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, SP_E_NO_MEMORY);
    EXPECT_NE(refused.error().text().find("16 heaps attached, the maximum"), std::string_view::npos) << refused.error().message;
    images[5]->detach();
    Heap& late = images.back()->attach();
    EXPECT_EQ(number_of(late), 5u);
    EXPECT_TRUE(lies_in(*images.back(), late.allocate(100)));
}

TEST(SeveralHeaps, AnImageThatHasAHeapIsRefused)
{
    TestImage image(4 * mib, 64 * mib, base_of(1));
    Heap& heap = image.attach();
    Heap::Options inside = image.options;
    inside.image_base += 32 * mib;
    inside.image_bytes = inside.image_bytes_max = 16 * mib;
    for (const Heap::Options& options : {image.options, inside}) {
        const auto second = Heap::attach(options);
        ASSERT_FALSE(second);
        EXPECT_EQ(second.error().code, SP_E_ALREADY_OPEN);
    }
    EXPECT_NE(heap.allocate(100), nullptr);
}

TEST(SeveralHeaps, TheLastFailureIsTheThreads)
{
    TestImage images[] = {TestImage(4 * mib, 0, base_of(0)), TestImage(4 * mib, 0, base_of(1))};
    Heap& failing = images[0].attach();
    Heap& other = images[1].attach();
    EXPECT_EQ(failing.allocate(5 * mib), nullptr);
    EXPECT_NE(other.allocate(5), nullptr);
    EXPECT_EQ(Heap::last_failure().code, SP_E_POOL_FULL);
    std::thread([&other] {
        EXPECT_NE(other.allocate(5), nullptr);
        EXPECT_EQ(Heap::last_failure().code, SP_OK);
    }).join();
}

TEST(SeveralHeaps, OthersAreInUseWhileHeapsComeAndGo)
{
    TestImage kept_image(32 * mib, 0, base_of(0));
    kept_image.options.table_format = layout::TableFormat::logged;
    Heap& kept = kept_image.attach();
    std::atomic<bool> ends{false};
    std::vector<std::thread> users;
    for (unsigned t = 0; t < 2; ++t) {
        users.emplace_back([&] {
            while (!ends) {
                Heap::let_frees_wait(true);
                kept.deallocate(kept.allocate(300));
                Heap::let_frees_wait(false);
            }
            kept.flush_thread_cache();
        });
    }
    std::vector<std::thread> openers;
    for (unsigned t = 0; t < 3; ++t) {
        openers.emplace_back([t] {
            TestImage image(8 * mib, 0, base_of(1 + t));
            image.options.table_format = layout::TableFormat::logged;
            for (std::uint64_t round = 0; round < 100; ++round) {
                Heap& heap = image.attach();
                ASSERT_EQ(heap.statistics().live_blocks, round);
                Heap::let_frees_wait(true);
                for (int i = 0; i < 100; ++i) {
                    heap.deallocate(heap.allocate(300));
                }
                Heap::let_frees_wait(false);
                ASSERT_TRUE(lies_in(image, heap.allocate(300)));
                image.detach();
            }
        });
    }
    for (std::thread& thread : openers) {
        thread.join();
    }
    ends = true;
    for (std::thread& thread : users) {
        thread.join();
    }
    EXPECT_EQ(kept.statistics().free_bytes, kept.statistics().heap_bytes);
}

/// Heaps with logged tables, in epochs that the test counts.
class SeveralLoggedHeaps : public testing::Test {
protected:
    SeveralLoggedHeaps()
    {
        run_epoch(5);
        for (std::size_t i = 0; i < 2; ++i) {
            images_[i].options.table_format = layout::TableFormat::logged;
            heaps_[i] = &images_[i].attach();
        }
    }
    ~SeveralLoggedHeaps() override
    {
        logged::running_word = 1;
        logged::durable_epoch = 0;
    }
    static void run_epoch(std::uint64_t epoch)
    {
        logged::running_word = 2 * epoch + 1;
        logged::durable_epoch = epoch - 1;
    }
    static std::uint16_t layout_of(Heap& heap, std::uint32_t size_bytes)
    {
        const Heap::ObjectLayout::Member member{.offset_bytes = 0, .kind = logged::kind_of_word, .count = 1};
        const auto found =
            heap.find_layout({.type_name = "object", .size_bytes = size_bytes, .alignment_bytes = 32, .members = {&member, 1}});
        EXPECT_TRUE(found) << found.error().message;
        return found.value_or(0);
    }

    TestImage images_[2] = {TestImage(16 * mib, 0, base_of(0)), TestImage(16 * mib, 0, base_of(1))};
    std::array<Heap*, 2> heaps_{};
};

TEST_F(SeveralLoggedHeaps, OneTagIsOfAnotherTypeInEachAndInTheNextHeapWithTheNumber)
{
    const std::uint32_t sizes[] = {64, 1024};
    std::uint16_t tags[2];
    for (unsigned which = 0; which < 2; ++which) {
        tags[which] = heaps_[which]->tag_of_typed(layout_of(*heaps_[which], sizes[which]), 32, sizes[which]);
    }
    ASSERT_EQ(tags[0], tags[1]);
    for (int i = 0; i < 500; ++i) {
        for (unsigned which = 0; which < 2; ++which) {
            void* const block = heaps_[which]->allocate_tagged(tags[which]);
            ASSERT_TRUE(lies_in(images_[which], block));
            ASSERT_EQ(heaps_[which]->usable_size(block), sizes[which]);
            heaps_[which]->deallocate(i % 3 == 0 ? block : nullptr);
        }
    }
    images_[0].detach();
    TestImage next_image(16 * mib, 0, base_of(2));
    next_image.options.table_format = layout::TableFormat::logged;
    Heap& next = next_image.attach();
    const std::uint16_t tag = next.tag_of_typed(layout_of(next, 32), 32, 32);
    ASSERT_EQ(tag, tags[0]);
    for (int i = 0; i < 1000; ++i) {
        void* const block = next.allocate_tagged(tag);
        ASSERT_TRUE(lies_in(next_image, block));
        ASSERT_EQ(next.usable_size(block), 32u);
    }
    EXPECT_EQ(heaps_[1]->usable_size(heaps_[1]->allocate_tagged(tags[1])), 1024u);
}

TEST_F(SeveralLoggedHeaps, AFreedBlockWaitsForItsEpochInItsOwnHeap)
{
    void* blocks[2];
    for (unsigned which = 0; which < 2; ++which) {
        blocks[which] = heaps_[which]->allocate(32 * kib);
    }
    run_epoch(6);
    for (unsigned which = 0; which < 2; ++which) {
        heaps_[which]->deallocate(blocks[which]);
    }
    const auto is_given_out = [&](unsigned which) {
        bool found = false;
        for (int i = 0; i < 100; ++i) {
            void* const block = heaps_[which]->allocate(32 * kib);
            EXPECT_TRUE(lies_in(images_[which], block));
            found = found || block == blocks[which];
        }
        return found;
    };
    EXPECT_FALSE(is_given_out(0));
    EXPECT_FALSE(is_given_out(1));
    images_[0].detach();
    run_epoch(7);
    EXPECT_TRUE(is_given_out(1));
    TestImage next_image(16 * mib, 0, base_of(2));
    next_image.options.table_format = layout::TableFormat::logged;
    Heap& next = next_image.attach();
    for (int i = 0; i < 100; ++i) {
        ASSERT_TRUE(lies_in(next_image, next.allocate(32 * kib)));
    }
}

TEST_F(SeveralLoggedHeaps, FreesThatWaitAreDoneInEach)
{
    void* blocks[2];
    for (unsigned which = 0; which < 2; ++which) {
        blocks[which] = heaps_[which]->allocate(100);
    }
    Heap::let_frees_wait(true);
    for (unsigned which = 0; which < 2; ++which) {
        heaps_[which]->deallocate(blocks[which]);
        EXPECT_EQ(heaps_[which]->statistics().live_blocks, 1u);
    }
    Heap::let_frees_wait(false);
    EXPECT_EQ(heaps_[0]->statistics().live_blocks, 0u);
    EXPECT_EQ(heaps_[1]->statistics().live_blocks, 0u);
}

TEST_F(SeveralLoggedHeaps, AThreadDoesTheFreesThatWaitWhileAHeapThatItUsedIsDetached)
{
    std::atomic<bool> has_used_both{false};
    std::atomic<bool> ends{false};
    std::thread user([&] {
        const auto free_one = [](Heap& heap) {
            Heap::let_frees_wait(true);
            heap.deallocate(heap.allocate(300));
            Heap::let_frees_wait(false);
        };
        free_one(*heaps_[0]);
        free_one(*heaps_[1]);
        has_used_both = true;
        while (!ends) {
            free_one(*heaps_[1]);
        }
    });
    while (!has_used_both) {
        std::this_thread::yield();
    }
    for (int round = 0; round < 200; ++round) {
        images_[0].detach();
        EXPECT_EQ(images_[0].attach().statistics().live_blocks, 0u);
    }
    ends = true;
    user.join();
    EXPECT_EQ(heaps_[1]->statistics().live_blocks, 0u);
}

TEST_F(SeveralLoggedHeaps, AFreeThatWaitsWhenItsHeapIsDetachedIsNeverDone)
{
    Heap::let_frees_wait(true);
    heaps_[0]->deallocate(heaps_[0]->allocate(100));
    void* const block = heaps_[1]->allocate(100);
    heaps_[1]->deallocate(block);
    images_[0].detach();
    const Heap& again = images_[0].attach();
    Heap::let_frees_wait(false);
    EXPECT_EQ(heaps_[1]->statistics().live_blocks, 0u);
    EXPECT_EQ(again.statistics().live_blocks, 1u) << "as after a crash in that FASE";
}

}  // namespace
}  // namespace stillpoint

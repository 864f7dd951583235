// Invariants: blocks live in one thread are never handed to another; blocks may be freed by any
// thread; what a thread that ended had cached is not lost; threads with different homes write different lines of
// marks while memory lasts, and use each other's before the image grows.

#include <atomic>
#include <barrier>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <chrono>
#include <thread>

#include "support/test_image.hpp"
#include "heap/thread_cache.hpp"

namespace stillpoint {
namespace {

TEST(HeapThreads, ConcurrentUseKeepsContentsApart)
{
    TestImage image(4 * mib, gib);
    Heap& heap = image.attach();
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t) {
        threads.emplace_back([&heap, t] {
            std::mt19937 random(t);
            std::vector<std::pair<unsigned char*, std::size_t>> live(300);
            for (int step = 0; step < 20'000; ++step) {
                auto& [block, size] = live[random() % live.size()];
                for (std::size_t i = 0; i < size; i += 7) {
                    ASSERT_EQ(block[i], t + 1);
                }
                heap.deallocate(block);
                size = random() % 100 == 0 ? random() % 100'000 + 1 : random() % 600 + 1;
                block = static_cast<unsigned char*>(heap.allocate(size));
                ASSERT_NE(block, nullptr);
                std::memset(block, static_cast<int>(t + 1), size);
            }
            for (auto& [block, size] : live) {
                heap.deallocate(block);
            }
            heap.flush_thread_cache();
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(heap.statistics().free_bytes, heap.statistics().heap_bytes);
    EXPECT_TRUE(Heap::check(image.options));
}

TEST(HeapThreads, ConsumersFreeWhatProducersAllocateWithinBoundedMemory)
{
    TestImage image(32 * mib);  // At its maximum: a leak of any rate fails the test.
    Heap& heap = image.attach();
    std::mutex mutex;
    std::deque<unsigned char*> queue;
    std::atomic<int> producers{2};
    const auto produce = [&] {
        for (int i = 0; i < 100'000; ++i) {
            auto* block = static_cast<unsigned char*>(heap.allocate(200));
            ASSERT_NE(block, nullptr);
            std::memset(block, i % 256, 200);
            const std::lock_guard hold(mutex);
            if (queue.size() < 1000) {
                queue.push_back(block);
            } else {
                std::swap(queue[static_cast<std::size_t>(i) % 1000], block);
                heap.deallocate(block);
            }
        }
        heap.flush_thread_cache();
        --producers;
    };
    const auto consume = [&] {
        for (;;) {
            unsigned char* block = nullptr;
            const bool last_look = producers == 0;
            {
                const std::lock_guard hold(mutex);
                if (!queue.empty()) {
                    block = queue.front();
                    queue.pop_front();
                }
            }
            if (block == nullptr) {
                if (last_look) {
                    break;
                }
                std::this_thread::yield();
                continue;
            }
            ASSERT_EQ(block[0], block[199]);
            heap.deallocate(block);
        }
        heap.flush_thread_cache();
    };
    std::thread threads[] = {std::thread(produce), std::thread(produce), std::thread(consume), std::thread(consume)};
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(heap.statistics().live_blocks, 0u);
}

TEST(HeapThreads, FreesRightAfterRecoveryRaceWithTheFirstAllocations)
{
    TestImage image(32 * mib);
    Heap* heap = &image.attach();
    std::vector<unsigned char*> blocks;
    for (int i = 0; i < 40'000; ++i) {
        blocks.push_back(static_cast<unsigned char*>(heap->allocate(100)));
    }
    heap = &image.crash_back_to(image.snapshot());  // Every span is unknown now.
    std::thread threads[3];
    for (unsigned t = 0; t < 2; ++t) {
        threads[t] = std::thread([&, t] {
            for (std::size_t i = t; i < blocks.size(); i += 2) {
                heap->deallocate(blocks[i]);
            }
            heap->flush_thread_cache();
        });
    }
    threads[2] = std::thread([&] {
        std::vector<unsigned char*> own;
        for (int i = 0; i < 20'000; ++i) {
            own.push_back(static_cast<unsigned char*>(heap->allocate(100)));
            std::memset(own.back(), i % 256, 100);
        }
        for (std::size_t i = 0; i < own.size(); ++i) {
            ASSERT_EQ(own[i][50], i % 256);
            heap->deallocate(own[i]);
        }
        heap->flush_thread_cache();
    });
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(heap->statistics().free_bytes, heap->statistics().heap_bytes);
}

TEST(HeapThreads, CachesOfThreadsThatDiedWithoutFlushingAreReclaimed)
{
    TestImage image(8 * mib);
    Heap& heap = image.attach();
    for (int i = 0; i < 300; ++i) {
        std::thread([&heap] {
            for (std::size_t size = 1024; size <= 32 * kib; size *= 2) {
                heap.deallocate(heap.allocate(size));
            }
        }).join();
    }
    std::size_t total = 0;
    // The kernel forgets a thread a little after join() has returned.
    for (int tries = 0; total < heap.statistics().heap_bytes && tries < 200; ++tries) {
        while (heap.allocate(60 * kib) != nullptr) {
            total += 64 * kib;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(total, heap.statistics().heap_bytes);
}

TEST(HeapThreads, ThreadsThatOutliveOneHeapUseTheNext)
{
    for (int round = 0; round < 3; ++round) {
        TestImage image(16 * mib);
        Heap& heap = image.attach();  // The main thread's cache is the same in every round.
        void* block = heap.allocate(64);
        heap.deallocate(block);
        EXPECT_EQ(heap.statistics().live_blocks, 0u);
    }
}

TEST(HeapThreads, ManyThreadsThatNeedMoreMemoryAtOnceGrowTheImage)
{
    TestImage image(4 * mib, gib);
    Heap& heap = image.attach();
    std::vector<std::thread> threads;
    std::atomic<int> failures{0};
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i < 100; ++i) {
                failures += heap.allocate(300'000) == nullptr;
                failures += heap.allocate(20'000) == nullptr;
            }
            heap.flush_thread_cache();
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(failures, 0);
    EXPECT_EQ(heap.statistics().live_blocks, 800u);
}

/// Two threads that live at the same time, so that their homes differ, and call turn(which) one after the other.
template <class Turn>
void take_turns(Heap& heap, int turns, Turn turn)
{
    std::barrier<> next(2);
    std::uint32_t homes[2];
    const auto run = [&](unsigned which) {
        heap.deallocate(heap.allocate(1));
        homes[which] = heap::own_home(heap::state_of(heap));
        for (int i = 0; i < turns; ++i) {
            next.arrive_and_wait();
            if (static_cast<unsigned>(i) % 2 == which) {
                turn(which);
            }
        }
        next.arrive_and_wait();
        heap.flush_thread_cache();
    };
    std::thread other(run, 1);
    run(0);
    other.join();
    ASSERT_NE(homes[0], homes[1]);
}

TEST(HeapThreads, TwoHomesWriteDifferentLinesOfMarks)
{
    TestImage image(64 * mib);
    Heap& heap = image.attach();
    for (const std::size_t size : std::initializer_list<std::size_t>{1024, 4096, 16 * kib}) {
        std::map<const std::uint8_t*, unsigned> user_of_line;
        take_turns(heap, 12, [&](unsigned which) {
            for (int i = 0; i < 21; ++i) {
                const auto* block = static_cast<const std::byte*>(heap.allocate(size));
                ASSERT_NE(block, nullptr);
                const auto span = static_cast<std::uint64_t>(block - heap::state_of(heap).spans_base) / heap::span_bytes;
                const std::uint8_t* const marks = heap::span_info(heap::state_of(heap), span).marks();
                const std::uint8_t* const line = marks - reinterpret_cast<std::uintptr_t>(marks) % cache_line_bytes;
                ASSERT_EQ(user_of_line.try_emplace(line, which).first->second, which) << size;
            }
        });
    }
}

TEST(HeapThreads, BlocksOfAnotherHomeAreUsedBeforeTheImageGrows)
{
    TestImage image(8 * mib, 64 * mib);
    Heap& heap = image.attach();
    constexpr std::size_t in_spans_of_one_home = 7000;  // 111 of 126 spans; half of these blocks are freed.
    std::vector<void*> blocks(in_spans_of_one_home);
    take_turns(heap, 2, [&](unsigned which) {
        for (std::size_t i = 0; which == 0 && i < blocks.size(); ++i) {
            blocks[i] = heap.allocate(1000);
        }
        for (std::size_t i = 0; which == 1 && i < blocks.size() / 2; ++i) {
            heap.deallocate(blocks[2 * i]);
        }
    });
    ASSERT_EQ(image.growths, 0u);
    take_turns(heap, 2, [&](unsigned which) {
        for (std::size_t i = 0; which == 1 && i < blocks.size() / 2; ++i) {
            ASSERT_NE(heap.allocate(1000), nullptr);
        }
    });
    EXPECT_EQ(image.growths, 0u);
}

TEST(HeapThreads, SpansChangeTheirHomeWhileTheirBlocksComeBack)
{
    // Full most of the time: the homes live on each other's spans, and blocks are freed by another thread than the one that
    // allocated them.
    TestImage image(4 * mib);
    Heap& heap = image.attach();
    std::mutex mutex;
    std::vector<unsigned char*> exchange(4500);
    std::vector<std::thread> threads;
    std::atomic<std::uint64_t> allocated{0};
    for (unsigned t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            std::mt19937 random(t);
            for (int step = 0; step < 30'000; ++step) {
                auto* block = static_cast<unsigned char*>(heap.allocate(1024));
                if (block != nullptr) {
                    std::memset(block, static_cast<int>(random() % 256), 1024);
                    ++allocated;
                }
                {
                    const std::lock_guard hold(mutex);
                    std::swap(exchange[random() % exchange.size()], block);
                }
                if (block != nullptr) {
                    ASSERT_EQ(block[0], block[1023]);
                    heap.deallocate(block);
                }
            }
            heap.flush_thread_cache();
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_GT(allocated, 30'000u);
    EXPECT_TRUE(Heap::check(image.options));
    for (unsigned char* block : exchange) {
        heap.deallocate(block);
    }
    EXPECT_EQ(heap.statistics().free_bytes, heap.statistics().heap_bytes);
}

}  // namespace
}  // namespace stillpoint

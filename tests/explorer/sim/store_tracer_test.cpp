// Every store of the program into a range of map_at() is in the trace: all of it, in order, and nothing else.

#include "core/sanitizers.hpp"

#if defined(__x86_64__) && !STILLPOINT_THREAD_SANITIZER  // A handler of ours may not interrupt the sanitizer's runtime.

#include <atomic>
#include <csignal>
#include <cstring>
#include <gtest/gtest.h>
#include <numeric>
#include <sys/mman.h>
#include <thread>

#include "sim/sim_medium.hpp"
#include "os/futex.hpp"
#include "os/service_thread.hpp"

namespace stillpoint::sim {
namespace {

constexpr std::uint64_t range_offset = 2 * page_bytes;
constexpr std::uint64_t range_bytes = 32 * page_bytes;

/// A simulated file of which the program has a range as its memory.
class StoreTracer : public ::testing::Test {
protected:
    StoreTracer() : trace_(std::size_t{1} << 26), stage_(true, CrashImage{PageMap{}, false})
    {
        void* const place = mmap(reinterpret_cast<void*>(window_base), range_bytes, PROT_NONE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        memory_ = static_cast<std::byte*>(place);
        MediumOptions options;
        options.path = "simulated";
        set_stage(&stage_);
        auto medium = create_medium(options, range_offset + range_bytes + page_bytes);
        EXPECT_TRUE(medium) << medium.error().message;
        medium_ = std::move(*medium);
        const auto mapped = medium_->map_at(memory_, range_offset, range_bytes);
        EXPECT_TRUE(mapped) << mapped.error().message;
        recording.store(&trace_);
    }
    ~StoreTracer() override
    {
        recording.store(nullptr);
        set_stage(nullptr);
        munmap(memory_, range_bytes);
    }

    template <class T>
    [[nodiscard]] T& at(std::uint64_t offset) const
    {
        return *reinterpret_cast<T*>(memory_ + offset);
    }
    /// The stores so far, and that they make the file what it is.
    [[nodiscard]] std::vector<Event> stores() const
    {
        std::vector<Event> found = trace_.events();
        std::erase_if(found, [](const Event& event) { return event.kind != EventKind::store; });
        std::vector<std::byte> replayed(range_offset + range_bytes);
        for (const Event& event : found) {
            std::memcpy(replayed.data() + event.offset, event.data, event.size);
        }
        EXPECT_EQ(std::memcmp(replayed.data(), stage_.visible_bytes(), replayed.size()), 0) << "a store is missing";
        EXPECT_EQ(std::memcmp(memory_, stage_.visible_bytes() + range_offset, range_bytes), 0);
        return found;
    }
    [[nodiscard]] static std::uint64_t word_of(const Event& event)
    {
        std::uint64_t word = 0;
        std::memcpy(&word, event.data, std::min<std::size_t>(event.size, sizeof word));
        return word;
    }

    Trace trace_;
    Stage stage_;
    std::byte* memory_;
    std::unique_ptr<Medium> medium_;
};

TEST_F(StoreTracer, SeesEachStoreInProgramOrder)
{
    auto* const words = &at<volatile std::uint64_t>(0);
    words[3] = 0x0101010101010101;
    words[1] = 0x0202020202020202;
    words[3] = 0x0303030303030303;
    at<volatile std::uint8_t>(77) = 4;
    EXPECT_EQ(words[3], 0x0303030303030303u);
    const auto seen = stores();
    ASSERT_EQ(seen.size(), 4u);
    EXPECT_EQ(seen[0].offset, range_offset + 24);
    EXPECT_EQ(seen[1].offset, range_offset + 8);
    EXPECT_EQ(word_of(seen[2]), 0x0303030303030303u);
    EXPECT_EQ(seen[3].offset, range_offset + 77);
    EXPECT_EQ(seen[3].size, 1u);
}

TEST_F(StoreTracer, TellsNothingOfAStoreThatChangesNothing)
{
    at<volatile std::uint64_t>(64) = 0;
    at<volatile std::uint64_t>(64) = 7;
    at<volatile std::uint64_t>(64) = 7;
    EXPECT_EQ(stores().size(), 1u);
}

TEST_F(StoreTracer, SeesAStoreOfItsOwnAddress)
{
    struct Ring {
        Ring* next;
    };
    auto& ring = at<Ring>(128);
    Ring* volatile* const link = &ring.next;
    *link = &ring;  // Base and source may be one register.
    EXPECT_EQ(ring.next, &ring);
    EXPECT_EQ(stores().size(), 1u);
}

TEST_F(StoreTracer, SeesCopiesOfAnySizeAndAlignment)
{
    std::vector<unsigned char> source(5 * page_bytes);
    std::iota(source.begin(), source.end(), static_cast<unsigned char>(1));
    std::uint64_t place = 3;
    for (const std::size_t size : {1u, 2u, 3u, 7u, 8u, 15u, 31u, 33u, 63u, 65u, 127u, 300u, 2049u, 4097u, 5u * 4096u}) {
        std::memcpy(memory_ + place, source.data(), size);
        EXPECT_EQ(std::memcmp(memory_ + place, source.data(), size), 0) << size;
        std::memmove(memory_ + place + 5, memory_ + place, size);
        EXPECT_EQ(std::memcmp(memory_ + place + 5, source.data(), size), 0) << size;
        place += size + 6;
    }
    for (const Event& event : stores()) {
        EXPECT_LE(event.size, 72u) << "one event is one instruction, or one line";
    }
}

TEST_F(StoreTracer, SeesFillsOfSeveralPages)
{
    std::memset(memory_ + 100, 0xa5, 3 * page_bytes);
    std::memset(memory_ + 200, 0, 2 * page_bytes);
    EXPECT_GE(stores().size(), 5 * page_bytes / 72);
}

TEST_F(StoreTracer, SeesStringInstructionsBackwardsToo)
{
    const char text[] = "backwards";
    std::byte* target = memory_ + page_bytes + 4;  // Across the end of a page.
    const char* source = text + 8;
    std::size_t count = 9;
    asm volatile("std; rep movsb; cld" : "+D"(target), "+S"(source), "+c"(count) : : "memory");
    EXPECT_EQ(count, 0u);
    EXPECT_EQ(target, memory_ + page_bytes - 5);
    EXPECT_EQ(std::memcmp(memory_ + page_bytes - 4, text, 9), 0);
    EXPECT_EQ(stores().size(), 9u) << "one for each iteration";
    std::uint64_t* words = &at<std::uint64_t>(5 * page_bytes + 8);
    asm volatile("stosq" : "+D"(words) : "a"(0x1122334455667788) : "memory");
    EXPECT_EQ(words, &at<std::uint64_t>(5 * page_bytes + 16));
    EXPECT_EQ(word_of(stores().back()), 0x1122334455667788u);
}

TEST_F(StoreTracer, SeesStoresAcrossTheEndOfAPage)
{
    const std::uint64_t word = 0x1122334455667788;
    std::memcpy(memory_ + page_bytes - 3, &word, sizeof word);
    __atomic_store_n(&at<std::uint64_t>(2 * page_bytes - 8), word, __ATOMIC_RELAXED);
    const std::uint64_t wide[2] = {word, ~word};
    std::memcpy(memory_ + 3 * page_bytes - 9, wide, sizeof wide);
    const auto seen = stores();
    ASSERT_GE(seen.size(), 3u);
    EXPECT_EQ(seen[0].offset, range_offset + page_bytes - 3);
    EXPECT_EQ(seen[0].size, 8u);
    EXPECT_EQ(seen[2].offset, range_offset + 3 * page_bytes - 9);
}

TEST_F(StoreTracer, SeesAtomicOperations)
{
    auto& counter = at<std::atomic<std::uint64_t>>(640);
    EXPECT_EQ(counter.fetch_add(5), 0u);
    EXPECT_EQ(counter.exchange(9), 5u);
    std::uint64_t expected = 1;
    EXPECT_FALSE(counter.compare_exchange_strong(expected, 2));
    EXPECT_EQ(expected, 9u);
    EXPECT_TRUE(counter.compare_exchange_strong(expected, 2));
    counter |= 8;
    EXPECT_EQ(counter.load(), 10u);
    EXPECT_EQ(stores().size(), 4u);
    pthread_mutex_t& mutex = at<pthread_mutex_t>(1024);
    pthread_mutex_init(&mutex, nullptr);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    EXPECT_GT(stores().size(), 4u);
}

TEST_F(StoreTracer, SeesEveryStoreOfTwoThreadsInOnePage)
{
    constexpr std::uint64_t count = 3000;
    auto* const words = &at<std::atomic<std::uint64_t>>(0);
    const auto work = [=](std::uint64_t mine) {
        for (std::uint64_t i = 1; i <= count; ++i) {
            words[mine].store(i, std::memory_order_relaxed);
            words[2 + mine].store(i, std::memory_order_relaxed);
            words[4].fetch_add(1, std::memory_order_relaxed);
        }
    };
    std::thread other(work, 1);
    work(0);
    other.join();
    std::array<std::uint64_t, 5> newest{};
    for (const Event& event : stores()) {
        const std::uint64_t index = (event.offset - range_offset) / 8;
        std::array<std::uint64_t, 5>& now = newest;
        std::memcpy(reinterpret_cast<std::byte*>(now.data()) + (event.offset - range_offset), event.data, event.size);
        if (index >= 2 && index < 4) {
            ASSERT_EQ(now[index], now[index - 2]) << "the second store of a pair came before the first";
        }
    }
    EXPECT_EQ(newest, (std::array<std::uint64_t, 5>{count, count, count, count, 2 * count}));
    EXPECT_GE(stores().size(), 6 * count);
}

TEST_F(StoreTracer, OrdersThemWithWriteBacksAndFences)
{
    at<volatile std::uint64_t>(0) = 1;
    const std::uintptr_t line = reinterpret_cast<std::uintptr_t>(memory_);
    medium_->write_back_lines({&line, 1});
    medium_->fence();
    at<volatile std::uint64_t>(8) = 2;
    CrashModel model(Profile::cache_line, CrashImage{PageMap(range_offset + range_bytes), true});
    for (const Event& event : trace_.events()) {
        model.apply(event);
    }
    ASSERT_EQ(model.units().size(), 1u);
    EXPECT_EQ(model.units()[0].offset, range_offset);
    EXPECT_EQ(model.units()[0].versions, 2u) << "the first word is durable, the second one may be";
}

TEST_F(StoreTracer, LeavesTheMediumItsOwnStores)
{
    const std::uint64_t word = 5;
    medium_->store(range_offset + 16, &word, sizeof word);
    EXPECT_EQ(at<std::uint64_t>(16), 5u);
    EXPECT_EQ(stores().size(), 1u);
}

std::atomic<std::uint32_t> stored_by_service{0};

TEST_F(StoreTracer, SeesThreadsOfTheRuntime)
{
    os::ServiceThread thread;
    const auto run = [](void* word) {
        *static_cast<volatile std::uint64_t*>(word) = 3;
        stored_by_service = 1;
        os::futex_wake(stored_by_service);
    };
    ASSERT_TRUE(thread.start("sp-test", run, memory_));
    while (stored_by_service == 0) {
        os::futex_wait(stored_by_service, 0);
    }
    thread.join();
    EXPECT_EQ(stores().size(), 1u);
}

TEST_F(StoreTracer, LeavesOtherFaultsToWhoeverHadThem)
{
    auto* const nowhere = static_cast<volatile std::byte*>(mmap(nullptr, page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_EXIT(*nowhere = std::byte{1}, [](int status) { return status != 0; }, "");
    munmap(const_cast<std::byte*>(nowhere), page_bytes);
}

TEST(StoreTracerRange, BelongsToByteAddressableMediaAndToTheFile)
{
    Stage blocks(false, CrashImage{PageMap{}, false});
    set_stage(&blocks);
    MediumOptions options;
    options.path = "simulated";
    auto medium = create_medium(options, 4 * page_bytes);
    EXPECT_EQ((*medium)->map_at(nullptr, 0, page_bytes).error().code, SP_E_UNSUPPORTED);
    Stage bytes(true, CrashImage{PageMap{}, false});
    set_stage(&bytes);
    medium = create_medium(options, 4 * page_bytes);
    EXPECT_EQ((*medium)->map_at(nullptr, 3 * page_bytes, 2 * page_bytes).error().code, SP_E_INVALID_ARGUMENT);
    set_stage(nullptr);
}

}  // namespace
}  // namespace stillpoint::sim

#endif

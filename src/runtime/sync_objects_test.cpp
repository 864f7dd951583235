// Invariants: an object that was in use at a capture, whatever state that left, is fresh after attach, with what its creator
// chose; nothing else is ever written, whatever it looks like; an entry that no run wrote is refused.

#include "runtime/sync_objects.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <pthread.h>
#include <random>
#include <semaphore.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "heap/size_classes.hpp"
#include "heap/heap_state.hpp"
#include "os/log.hpp"
#include "runtime/sync_object_reset.hpp"
#include "support/sync_objects_fixture.hpp"
#include "runtime/thread_registry.hpp"

namespace stillpoint {
namespace {

using test::image_bytes;
class SyncObjects : public test::ImageOfObjects {};

TEST_F(SyncObjects, MakeAConditionVariableFreshAndKeepItsClock)
{
    auto& condition = at<pthread_cond_t>(0);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&condition, &attributes);
    pthread_cond_t fresh;
    std::memcpy(&fresh, &condition, sizeof fresh);
    const SyncUse use(&condition, SyncObjectKind::condition);
    capture();
    // As with two waiters, one of them being woken.
    condition.__data.__wrefs += 2 << 3;
    condition.__data.__g_refs[1] = 4;
    condition.__data.__g_size[1] = 2;
    ASSERT_TRUE(attach());
    EXPECT_EQ(std::memcmp(&condition, &fresh, sizeof fresh), 0);
    EXPECT_EQ(pthread_cond_destroy(&condition), 0);  // Would wait for the waiters.
}

TEST_F(SyncObjects, MakeABarrierFreshAndKeepItsCount)
{
    auto& barrier = at<pthread_barrier_t>(64);
    pthread_barrier_init(&barrier, nullptr, 1);
    const SyncUse use(&barrier, SyncObjectKind::barrier);
    pthread_barrier_wait(&barrier);
    capture();
    unsigned words[5];
    std::memcpy(words, &barrier, sizeof words);
    ASSERT_EQ(words[2], 1u);  // The count's place.
    words[0] = 3;             // Waiters that are gone.
    std::memcpy(&barrier, words, sizeof words);
    ASSERT_TRUE(attach());
    EXPECT_EQ(pthread_barrier_wait(&barrier), PTHREAD_BARRIER_SERIAL_THREAD);
    EXPECT_EQ(pthread_barrier_destroy(&barrier), 0);
}

TEST_F(SyncObjects, ForgetASemaphoresWaitersAndKeepItsValue)
{
    auto& semaphore = at<sem_t>(128);
    sem_init(&semaphore, 0, 5);
    const SyncUse use(&semaphore, SyncObjectKind::semaphore);
    capture();
    unsigned words[2];
    std::memcpy(words, &semaphore, sizeof words);
    ASSERT_EQ(words[0], 5u);
    words[1] = 9;
    std::memcpy(&semaphore, words, sizeof words);
    ASSERT_TRUE(attach());
    std::memcpy(words, &semaphore, sizeof words);
    EXPECT_EQ(words[1], 0u);
    int value = 0;
    sem_getvalue(&semaphore, &value);
    EXPECT_EQ(value, 5);
}

TEST_F(SyncObjects, ResetByRecoveryAreTheirBytesButASemaphoresValue)
{
    const auto condition = reinterpret_cast<std::uintptr_t>(heap + 128);
    const auto semaphore = reinterpret_cast<std::uintptr_t>(heap + 512);
    const SyncUse use(heap + 128, SyncObjectKind::condition);
    const SyncUse other_use(heap + 512, SyncObjectKind::semaphore);
    EXPECT_FALSE(is_reset_by_recovery(condition));
    capture();
    for (const std::uintptr_t inside : {std::uintptr_t{0}, std::uintptr_t{5}, sizeof(pthread_cond_t) - 1}) {
        EXPECT_TRUE(is_reset_by_recovery(condition + inside)) << inside;
    }
    EXPECT_FALSE(is_reset_by_recovery(condition - 1));
    EXPECT_FALSE(is_reset_by_recovery(condition + sizeof(pthread_cond_t)));
    EXPECT_FALSE(is_reset_by_recovery(semaphore));
    EXPECT_FALSE(is_reset_by_recovery(semaphore + 3));
    EXPECT_TRUE(is_reset_by_recovery(semaphore + 4));
    EXPECT_FALSE(is_reset_by_recovery(semaphore + sizeof(sem_t)));
}

TEST_F(SyncObjects, FreeAMutexOfEachKindAndKeepTheKind)
{
    std::size_t offset = 256;
    for (const int type : {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK}) {
        auto& mutex = at<pthread_mutex_t>(offset);
        offset += sizeof mutex;
        pthread_mutexattr_t attributes;
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_settype(&attributes, type);
        pthread_mutex_init(&mutex, &attributes);
        pthread_mutex_lock(&mutex);
        sync_uses::begin_lock(&mutex, SyncObjectKind::mutex);
        capture();
        sync_uses::end_lock(&mutex);
        ASSERT_TRUE(attach());
        EXPECT_EQ(mutex.__data.__kind & 3, type);
        EXPECT_EQ(pthread_mutex_trylock(&mutex), 0);
        EXPECT_EQ(pthread_mutex_unlock(&mutex), 0);
        EXPECT_EQ(pthread_mutex_destroy(&mutex), 0);
    }
}

TEST_F(SyncObjects, FreeIgnoredReadWriteLocksAndSpinlocks)
{
    auto& rwlock = at<pthread_rwlock_t>(512);
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&rwlock, &attributes);
    pthread_rwlock_wrlock(&rwlock);
    auto& spinlock = at<pthread_spinlock_t>(640);
    pthread_spin_init(&spinlock, PTHREAD_PROCESS_PRIVATE);
    pthread_spin_lock(&spinlock);
    sync_uses::begin_lock(&rwlock, SyncObjectKind::rwlock);
    sync_uses::begin_lock(const_cast<const int*>(&spinlock), SyncObjectKind::spinlock);
    capture();
    sync_uses::end_lock(&rwlock);
    sync_uses::end_lock(const_cast<const int*>(&spinlock));
    ASSERT_TRUE(attach());
    EXPECT_EQ(pthread_rwlock_trywrlock(&rwlock), 0);
    EXPECT_EQ(pthread_rwlock_unlock(&rwlock), 0);
    EXPECT_EQ(rwlock.__data.__flags, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    EXPECT_EQ(pthread_spin_trylock(&spinlock), 0);
}

TEST_F(SyncObjects, GiveAnOrphanedRobustMutexToItsNextOwnerAsThat)
{
    auto& mutex = at<pthread_mutex_t>(704);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex, &attributes);
    const SyncUse use(&mutex, SyncObjectKind::mutex);
    std::thread owner([&] {
        static_cast<void>(attach_thread());
        mutex.__data.__lock = gettid();
        mutex.__data.__owner = gettid();
        mutex.__data.__nusers = 1;
        sync_uses::mutex_orphaned(&mutex);
    });
    owner.join();
    capture();
    ASSERT_TRUE(attach());
    EXPECT_EQ(pthread_mutex_lock(&mutex), EOWNERDEAD);
    EXPECT_EQ(pthread_mutex_consistent(&mutex), 0);
    EXPECT_EQ(pthread_mutex_unlock(&mutex), 0);
    EXPECT_EQ(pthread_mutex_destroy(&mutex), 0);
}

TEST_F(SyncObjects, AreFreeOfProcessStateWhenTheyAreFreeLocksAfterContention)
{
    // The property that recovery relies on for locks without an entry: used and released, they equal new ones in all
    // that names a holder or a waiter.
    auto& mutex = at<pthread_mutex_t>(1024);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex, &attributes);
    pthread_mutex_lock(&mutex);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    pthread_mutex_unlock(&mutex);
    EXPECT_EQ(mutex.__data.__lock, 0);
    EXPECT_EQ(mutex.__data.__owner, 0);
    EXPECT_EQ(mutex.__data.__count, 0u);
    EXPECT_EQ(mutex.__data.__nusers, 0u);
#if __PTHREAD_MUTEX_HAVE_PREV
    EXPECT_EQ(mutex.__data.__list.__prev, nullptr);
#endif
    EXPECT_EQ(mutex.__data.__list.__next, nullptr);
}

TEST_F(SyncObjects, WithoutARecordAreNeverWritten)
{
    std::minstd_rand random(1);
    for (int round = 0; round < 50; ++round) {
        std::vector<std::uint32_t> words(4096);
        std::generate(words.begin(), words.end(), [&] { return static_cast<std::uint32_t>(random() % (round % 2 == 0 ? 2 : 200)); });
        {
            const SyncUse use(heap + 64, SyncObjectKind::condition);
            sync_uses::begin_lock(heap + 256, SyncObjectKind::mutex);
            sync_uses::end_lock(heap + 256);
        }
        std::memcpy(heap, words.data(), words.size() * sizeof words[0]);
        capture();
        ASSERT_TRUE(attach());
        EXPECT_EQ(std::memcmp(heap, words.data(), words.size() * sizeof words[0]), 0);
    }
}

/// An object that a damaged or older table names is written only if it has the fingerprint, which is of that very kind.
TEST_F(SyncObjects, AreNotWrittenWhereTheRecordDoesNotFitTheBytes)
{
    os::set_least_severity(os::Severity::error);
    std::minstd_rand random(2);
    for (int round = 0; round < 3000; ++round) {
        std::array<std::uint32_t, 16> words{};
        std::generate(words.begin(), words.end(), [&] { return static_cast<std::uint32_t>(random() % (round % 2 == 0 ? 3 : 1'000'000)); });
        std::memcpy(heap, words.data(), sizeof words);
        const auto kind = static_cast<SyncObjectKind>(1 + random() % 7);
        std::uint64_t fingerprint = round % 3 == 0 ? 0 : random();
        if (fingerprint == sync_object_fingerprint(heap, kind)) {
            ++fingerprint;
        }
        table()[3] = {reinterpret_cast<std::uintptr_t>(heap), (fingerprint << 32) | static_cast<std::uint64_t>(kind)};
        ASSERT_TRUE(attach());
        EXPECT_EQ(entries(), 0u);
        ASSERT_EQ(std::memcmp(heap, words.data(), sizeof words), 0) << round;
    }
    os::set_least_severity(os::Severity::note);
}

TEST_F(SyncObjects, WhoseBytesAreSomethingElseAreLeftAlone)
{
    for (const auto kind : {SyncObjectKind::condition, SyncObjectKind::barrier, SyncObjectKind::semaphore, SyncObjectKind::mutex,
                            SyncObjectKind::rwlock, SyncObjectKind::orphaned_mutex}) {
        std::memset(heap, 0x5a, 64);
        const SyncUse use(heap, kind);
        capture();
        EXPECT_EQ(entries(), 1u);
        ASSERT_TRUE(attach());
        EXPECT_EQ(entries(), 0u);
        for (int i = 0; i < 64; ++i) {
            EXPECT_EQ(heap[i], std::byte{0x5a});
        }
    }
}

TEST_F(SyncObjects, OfImagesWithLoggedTablesAreNotRecorded)
{
    format_image(base, image_bytes, layout::TableFormat::logged);
    geometry = ImageGeometry::for_image(image_bytes, layout::TableFormat::logged);
    ASSERT_TRUE(attach());
    const SyncUse use(base + geometry.heap_offset, SyncObjectKind::condition);
    capture();
    EXPECT_EQ(entries(), 0u);
}

TEST_F(SyncObjects, OfMirroredMemoryAreRecordedUnderTheirDurableCopy)
{
    alignas(8) static std::byte program_memory[256];
    sync_objects_add_mirror(program_memory, heap + 8192, sizeof program_memory);
    const SyncUse use(program_memory + 64, SyncObjectKind::condition);
    const SyncUse outside(program_memory + sizeof program_memory, SyncObjectKind::condition);
    capture();
    EXPECT_EQ(table()[0].address, reinterpret_cast<std::uintptr_t>(heap + 8192 + 64));
    EXPECT_EQ(entries(), 1u);
}

TEST_F(SyncObjects, OfAForgedTableAreRefused)
{
    const auto first = reinterpret_cast<std::uintptr_t>(heap);
    const std::uintptr_t end = window_base + image_bytes;
    const layout::SyncObjectRecord forged[] = {
        {first, 0},                    // no kind
        {first, 8},                    //
        {first, UINT64_MAX},           //
        {first, 0x101},                //
        {first + 1, 1},                // not aligned
        {window_base, 1},              // the image's own tables
        {first - 8, 1},                //
        {end - 8, 1},                  // reaches beyond the image
        {end, 6},                      //
        {UINT64_MAX - 3, 1},           //
        {8, 1},                        // not durable
    };
    for (const auto& record : forged) {
        table()[5] = record;
        const auto attached = attach();
        ASSERT_FALSE(attached) << std::hex << record.address << " " << record.kind;
        EXPECT_EQ(attached.error().code, SP_E_POOL_CORRUPT);
        EXPECT_FALSE(sync_objects_check(heap_options(), window_base, geometry));
    }
    table()[5] = {end - 4, 6};
    EXPECT_TRUE(sync_objects_check(heap_options(), window_base, geometry));
    table()[5] = {};
    EXPECT_TRUE(attach());
}

TEST_F(SyncObjects, ThatARecordPutsIntoTheHeapsTablesAreRefused)
{
    const auto heap_layout = heap::HeapLayout::of(geometry.heap_offset, image_bytes, layout::TableFormat::plain);
    auto* const spans = reinterpret_cast<heap::SpanEntry*>(base + heap_layout.span_table_offset);
    constexpr std::uint32_t size_class = 4;
    const heap::SizeClass& small = heap::size_classes[size_class];
    spans[0] = heap::SpanEntry::large(2);
    spans[2] = heap::SpanEntry::small(size_class);
    const std::uintptr_t small_span = window_base + heap_layout.spans_offset + 2 * heap::span_bytes;
    const std::uintptr_t refused[] = {window_base + heap_layout.span_table_offset,
                                      window_base + heap_layout.coarse_marks_offset + 64,
                                      window_base + heap_layout.spans_offset - 16,
                                      small_span,  // its marks
                                      small_span - 8,
                                      small_span + small.first_block + small.block_bytes - 8};
    for (const std::uintptr_t address : refused) {
        table()[0] = {address, static_cast<std::uint64_t>(SyncObjectKind::semaphore)};
        EXPECT_FALSE(sync_objects_check(heap_options(), window_base, geometry)) << std::hex << address - window_base;
        EXPECT_FALSE(attach());
    }
    for (const std::uintptr_t address : {window_base + heap_layout.spans_offset + heap::span_bytes - 8, small_span + small.first_block}) {
        table()[0] = {address, static_cast<std::uint64_t>(SyncObjectKind::semaphore)};
        EXPECT_TRUE(sync_objects_check(heap_options(), window_base, geometry)) << std::hex << address - window_base;
    }
}

TEST_F(SyncObjects, InABlockThatIsFreeAreLeftAsTheyAre)
{
    const auto heap_layout = heap::HeapLayout::of(geometry.heap_offset, image_bytes, layout::TableFormat::plain);
    reinterpret_cast<heap::SpanEntry*>(base + heap_layout.span_table_offset)[0] = heap::SpanEntry::small(4);
    auto& semaphore = at<sem_t>(heap::size_classes[4].first_block);
    sem_init(&semaphore, 0, 5);
    unsigned words[2];
    std::memcpy(words, &semaphore, sizeof words);
    words[1] = 9;  // Waiters.
    std::memcpy(&semaphore, words, sizeof words);
    const std::uint64_t kind = std::uint64_t{sync_object_fingerprint(&semaphore, SyncObjectKind::semaphore)} << 32 |
                               static_cast<std::uint64_t>(SyncObjectKind::semaphore);
    table()[0] = {reinterpret_cast<std::uintptr_t>(&semaphore), kind};
    ASSERT_TRUE(attach());
    std::memcpy(words, &semaphore, sizeof words);
    EXPECT_EQ(words[1], 9U);
    EXPECT_EQ(entries(), 0U);
}

}  // namespace
}  // namespace stillpoint

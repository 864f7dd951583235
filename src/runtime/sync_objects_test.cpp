// Invariants: an object that a dead process left in any state is fresh after attach, with what its creator
// chose; nothing else is written; an entry that no run wrote is refused; freed memory is never reset.

#include "runtime/sync_objects.hpp"

#include <cstring>
#include <ctime>
#include <gtest/gtest.h>
#include <memory>
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <vector>

#include "core/sanitizers.hpp"
#include "core/units.hpp"
#include "pool/image_layout.hpp"
#include "runtime/fase.hpp"
#include "runtime/sync_object_reset.hpp"
#include "runtime/sync_object_set.hpp"

namespace stillpoint {
namespace {

constexpr std::uint64_t image_bytes = 8 * mib;

/// An image at its durable address, without a pool.
class SyncObjects : public testing::Test {
protected:
    void SetUp() override
    {
        if (thread_sanitizer) {
            GTEST_SKIP() << "the thread sanitizer keeps its own state of each lock";
        }
        void* mapped = mmap(reinterpret_cast<void*>(window_base), image_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        ASSERT_NE(mapped, MAP_FAILED);
        base = static_cast<std::byte*>(mapped);
        geometry = ImageGeometry::for_image(image_bytes);
        heap = base + geometry.heap_offset;
        ASSERT_TRUE(attach());
    }
    void TearDown() override
    {
        sync_objects_detach();
        if (base == nullptr) {
            return;
        }
        munmap(base, image_bytes);
    }
    Result<void> attach() const { return sync_objects_attach(base, geometry, image_bytes); }
    [[nodiscard]] layout::SyncObjectRecord* table() const
    {
        return reinterpret_cast<layout::SyncObjectRecord*>(base + geometry.sync_objects_offset);
    }
    [[nodiscard]] std::size_t entries() const
    {
        std::size_t count = 0;
        for (std::uint64_t i = 0; i < geometry.sync_objects_capacity; ++i) {
            count += table()[i].address != 0 ? 1u : 0u;
        }
        return count;
    }
    template <class Object>
    Object& at(std::size_t offset) const
    {
        return *reinterpret_cast<Object*>(heap + offset);
    }

    std::byte* base = nullptr;
    std::byte* heap = nullptr;
    ImageGeometry geometry{};
};

TEST_F(SyncObjects, MakeAConditionVariableFreshAndKeepItsClock)
{
    auto& condition = at<pthread_cond_t>(0);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&condition, &attributes);
    pthread_cond_t fresh;
    std::memcpy(&fresh, &condition, sizeof fresh);
    sync_object_used(&condition, SyncObjectKind::condition);
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
    sync_object_used(&barrier, SyncObjectKind::barrier);
    pthread_barrier_wait(&barrier);
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
    sync_object_used(&semaphore, SyncObjectKind::semaphore);
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
    sync_object_used(heap + 128, SyncObjectKind::condition);
    sync_object_used(heap + 512, SyncObjectKind::semaphore);
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
    for (const int type : {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
                           PTHREAD_MUTEX_ERRORCHECK}) {
        auto& mutex = at<pthread_mutex_t>(offset);
        offset += sizeof mutex;
        pthread_mutexattr_t attributes;
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_settype(&attributes, type);
        pthread_mutex_init(&mutex, &attributes);
        pthread_mutex_lock(&mutex);
        sync_object_used(&mutex, SyncObjectKind::mutex);
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
    sync_object_used(&rwlock, SyncObjectKind::rwlock);
    sync_object_used(const_cast<const int*>(&spinlock), SyncObjectKind::spinlock);
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
    sync_object_used(&mutex, SyncObjectKind::mutex);
    sync_object_used(&mutex, SyncObjectKind::orphaned_mutex);
    mutex.__data.__lock = 4'000'000;  // A thread that is gone.
    mutex.__data.__owner = 4'000'000;
    mutex.__data.__nusers = 1;
    ASSERT_TRUE(attach());
    EXPECT_EQ(pthread_mutex_lock(&mutex), EOWNERDEAD);
    EXPECT_EQ(pthread_mutex_consistent(&mutex), 0);
    EXPECT_EQ(pthread_mutex_unlock(&mutex), 0);
    EXPECT_EQ(pthread_mutex_destroy(&mutex), 0);
}

TEST_F(SyncObjects, AreFreeOfProcessStateWhenTheyAreFreeLocksAfterContention)
{
    // What recovery relies on for locks without an entry: used and released, they equal new ones in all
    // that says who holds or waits.
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

TEST_F(SyncObjects, AreRecordedOnceAndForgottenWhenDestroyedOrFreed)
{
    EXPECT_EQ(entries(), 0u);
    for (int i = 0; i < 3; ++i) {
        sync_object_used(heap, SyncObjectKind::condition);
        sync_object_used(heap + 4096, SyncObjectKind::condition);
        sync_object_used(heap + 65536, SyncObjectKind::semaphore);
    }
    EXPECT_EQ(entries(), 3u);
    sync_object_destroyed(heap);
    EXPECT_EQ(entries(), 2u);
    sync_objects_block_freed(heap + 4000, 90);
    EXPECT_EQ(entries(), 2u);
    sync_objects_block_freed(heap + 4090, 90);
    EXPECT_EQ(entries(), 1u);
    sync_objects_block_freed(heap, image_bytes / 2);
    EXPECT_EQ(entries(), 0u);
    int volatile_object = 0;
    sync_object_used(&volatile_object, SyncObjectKind::condition);
    EXPECT_EQ(entries(), 0u);
}

TEST_F(SyncObjects, ThatFillTheTableLeaveTheRestUnrecorded)
{
    const auto capacity = geometry.sync_objects_capacity;
    for (std::uint64_t i = 0; i <= capacity; ++i) {
        sync_object_used(heap + i * 64, SyncObjectKind::condition);
    }
    EXPECT_EQ(entries(), capacity);
    sync_object_destroyed(heap + 64);
    sync_object_used(heap + capacity * 64, SyncObjectKind::condition);
    EXPECT_EQ(entries(), capacity);
    EXPECT_EQ(table()[1].address, reinterpret_cast<std::uintptr_t>(heap + capacity * 64));
}

TEST_F(SyncObjects, WhoseBytesAreSomethingElseAreLeftAlone)
{
    for (const auto kind : {SyncObjectKind::condition, SyncObjectKind::barrier, SyncObjectKind::semaphore,
                            SyncObjectKind::mutex, SyncObjectKind::rwlock, SyncObjectKind::orphaned_mutex}) {
        sync_object_used(heap, kind);
        std::memset(heap, 0x5a, 64);
        ASSERT_TRUE(attach());
        EXPECT_EQ(entries(), 0u);
        for (int i = 0; i < 64; ++i) {
            EXPECT_EQ(heap[i], std::byte{0x5a});
        }
    }
}

TEST_F(SyncObjects, OfMirroredMemoryAreRecordedUnderTheirDurableCopy)
{
    alignas(8) static std::byte program_memory[256];
    sync_objects_add_mirror(program_memory, heap + 8192, sizeof program_memory);
    sync_object_used(program_memory + 64, SyncObjectKind::condition);
    EXPECT_EQ(table()[0].address, reinterpret_cast<std::uintptr_t>(heap + 8192 + 64));
    sync_object_used(program_memory + sizeof program_memory, SyncObjectKind::condition);
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
        EXPECT_FALSE(sync_objects_check(base, window_base, geometry, image_bytes));
    }
    table()[5] = {end - 4, 6};
    EXPECT_TRUE(sync_objects_check(base, window_base, geometry, image_bytes));
    table()[5] = {};
    EXPECT_TRUE(attach());
}

TEST(SyncObjectSet, FindsEachMemberAmongRemovals)
{
    constexpr std::uint32_t members = 1000;
    const auto set = std::make_unique<SyncObjectSet>();
    ASSERT_TRUE(set->map(members));
    const auto address = [](std::uint32_t i) { return window_base + i * 40u; };
    for (int round = 0; round < 4; ++round) {
        for (std::uint32_t i = 0; i < members; ++i) {
            if (set->find(address(i)) == SyncObjectSet::none) {
                set->insert(address(i), i);
            }
        }
        for (std::uint32_t i = 0; i < members; i += 3) {
            set->erase(address(i));
        }
        for (std::uint32_t i = 0; i < members; ++i) {
            EXPECT_EQ(set->find(address(i)), i % 3 == 0 ? SyncObjectSet::none : i);
        }
    }
    for (std::uint32_t i = 0; i < members; ++i) {
        set->erase(address(i));
    }
    EXPECT_FALSE(set->may_hold_one_in(window_base, 1 << 20));
    set->unmap();
}

}  // namespace
}  // namespace stillpoint

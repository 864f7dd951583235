// Invariants: what a capture finds in use is what its bytes may show in use; what is destroyed or freed is no longer in use.

#include "runtime/sync_uses.hpp"

#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <pthread.h>
#include <random>
#include <semaphore.h>
#include <thread>
#include <vector>

#include "support/sync_objects_fixture.hpp"

namespace stillpoint {
namespace {

using test::image_bytes;
class SyncUses : public test::ImageOfObjects {};

TEST_F(SyncUses, AreRecordedWhileTheyAreInUseAndNoLonger)
{
    capture();
    EXPECT_EQ(entries(), 0u);
    {
        const SyncUse use(heap, SyncObjectKind::condition);
        const SyncUse again(heap, SyncObjectKind::condition);
        const SyncUse other(heap + 65536, SyncObjectKind::semaphore);
        EXPECT_EQ(entries(), 0u) << "before the stop";
        capture();
        EXPECT_EQ(entries(), 2u);
        EXPECT_TRUE(is_recorded(heap));
        EXPECT_TRUE(is_recorded(heap + 65536));
    }
    EXPECT_EQ(entries(), 2u) << "of the captured epoch";
    capture();
    EXPECT_EQ(entries(), 0u);
    int volatile_object = 0;
    const SyncUse volatile_use(&volatile_object, SyncObjectKind::condition);
    capture();
    EXPECT_EQ(entries(), 0u);
}

TEST_F(SyncUses, AreForgottenWhenDestroyedOrFreedWhoeverUsesThem)
{
    const SyncUse first(heap, SyncObjectKind::barrier);
    const SyncUse second(heap + 4096, SyncObjectKind::condition);
    const SyncUse third(heap + 65536, SyncObjectKind::semaphore);
    sync_uses::begin_lock(heap + 8192, SyncObjectKind::mutex);
    std::thread other([&] {
        sync_uses::forget(heap, sizeof(pthread_barrier_t));
        sync_uses::forget(heap + 4096 + 40, 64);  // The last bytes of the object.
        sync_uses::forget(heap + 65536 + sizeof(sem_t), 64);
        sync_uses::forget(heap + 65536 - 64, 64);
    });
    other.join();
    capture();
    EXPECT_EQ(entries(), 2u);
    EXPECT_TRUE(is_recorded(heap + 65536));
    EXPECT_TRUE(is_recorded(heap + 8192));
    sync_uses::forget(heap, image_bytes / 2);
    capture();
    EXPECT_EQ(entries(), 0u);
    sync_uses::end_lock(heap + 8192);
}

TEST_F(SyncUses, ThatAThreadUsesBeyondTheRoomOfItsRecordAreRecordedToo)
{
    constexpr std::size_t locks = 100;
    for (std::size_t i = 0; i < locks; ++i) {
        sync_uses::begin_lock(heap + i * 64, SyncObjectKind::mutex);
    }
    capture();
    EXPECT_EQ(entries(), locks);
    for (std::size_t i = 0; i < locks; ++i) {
        sync_uses::end_lock(heap + i * 64);
    }
    capture();
    EXPECT_EQ(entries(), 0u);
}

TEST_F(SyncUses, ThatAreLocksOfAnyKindAreFreeAfterTheirRelease)
{
    for (const auto kind : {SyncObjectKind::mutex, SyncObjectKind::rwlock, SyncObjectKind::spinlock}) {
        sync_uses::begin_lock(heap, kind);
        sync_uses::begin_lock(heap, kind);  // Read locks may be held twice.
        sync_uses::begin_lock(heap + 128, kind);
        sync_uses::end_lock(heap);
        capture();
        EXPECT_EQ(entries(), 2u);
        sync_uses::end_lock(heap);
        capture();
        EXPECT_EQ(entries(), 1u);
        EXPECT_TRUE(is_recorded(heap + 128));
        sync_uses::end_lock(heap + 128);
        capture();
        EXPECT_EQ(entries(), 0u);
    }
}

TEST_F(SyncUses, ThatAreCallsStayWhenALockAtTheirPlaceIsReleased)
{
    const SyncUse waiting(heap, SyncObjectKind::mutex);
    sync_uses::begin_lock(heap, SyncObjectKind::mutex);
    sync_uses::end_lock(heap);
    sync_uses::end_lock(heap);
    capture();
    EXPECT_TRUE(is_recorded(heap));
}

TEST_F(SyncUses, ThatAnotherThreadReleasesAreFree)
{
    sync_uses::begin_lock(heap, SyncObjectKind::spinlock);
    std::thread([&] { sync_uses::end_lock(heap); }).join();
    capture();
    EXPECT_EQ(entries(), 0u);
}

TEST_F(SyncUses, ThatAThreadLeavesLockedAtItsEndAreRecordedUntilTheyAreReleased)
{
    auto& mutex = at<pthread_mutex_t>(0);
    auto& released = at<pthread_mutex_t>(64);
    pthread_mutex_init(&mutex, nullptr);
    pthread_mutex_init(&released, nullptr);
    std::thread([&] {
        for (auto* each : {&mutex, &released}) {
            sync_uses::begin_lock(each, SyncObjectKind::mutex);
            pthread_mutex_lock(each);
        }
    }).join();
    capture();
    EXPECT_EQ(entries(), 2u);
    pthread_mutex_unlock(&released);
    sync_uses::end_lock(&released);
    capture();
    EXPECT_EQ(entries(), 1u);
    std::memset(static_cast<void*>(&mutex), 1, sizeof mutex);  // Storage that is used again, without a call.
    capture();
    EXPECT_EQ(entries(), 0u);
}

TEST_F(SyncUses, InUseAsAModelSaysAreInTheTable)
{
    std::minstd_rand random(3);
    std::map<std::size_t, int> model;  // Uses of the object at each offset.
    const auto forget = [&](std::size_t begin, std::size_t size) {
        sync_uses::forget(heap + begin, size);
        std::erase_if(model, [=](const auto& use) { return use.first + sizeof(pthread_mutex_t) > begin && use.first < begin + size; });
    };
    for (int step = 0; step < 20'000; ++step) {
        const std::size_t offset = random() % 64 * 64 + random() % 2 * 65536;
        switch (random() % 5) {
        case 0:
        case 1:
            sync_uses::begin_lock(heap + offset, SyncObjectKind::mutex);
            ++model[offset];
            break;
        case 2:
            sync_uses::end_lock(heap + offset);
            if (model.contains(offset) && --model[offset] == 0) {
                model.erase(offset);
            }
            break;
        case 3:
            if (random() % 8 == 0) {
                forget(offset + random() % 64, 1 + random() % 300);
            }
            break;
        default:
            capture();
            ASSERT_EQ(entries(), model.size()) << step;
            ASSERT_TRUE(std::all_of(model.begin(), model.end(), [&](const auto& use) { return is_recorded(heap + use.first); })) << step;
        }
    }
    forget(0, 2 * 65536);
}

TEST_F(SyncUses, WhoseBytesACaptureFindsInUseAreInItsTable)
{
    constexpr std::size_t threads = 3;
    constexpr std::size_t objects = 4;
    std::atomic<bool> stop{false};
    std::vector<std::jthread> users;
    for (std::size_t thread = 0; thread < threads; ++thread) {
        users.emplace_back([&, thread] {
            for (std::size_t i = thread; !stop; ++i) {
                std::byte* const object = heap + i % objects * 64;
                const SyncUse use(object, SyncObjectKind::semaphore);
                // As libc does: the count of waiters.
                std::atomic_ref<int> waiters(*reinterpret_cast<int*>(object + 4));
                waiters.fetch_add(1);
                waiters.fetch_sub(1);
            }
        });
    }
    for (int round = 0; round < 150; ++round) {
        {
            const SyncObjectsCapture captured(base, [](void*, std::byte*, std::size_t) {}, nullptr);
            for (std::size_t i = 0; i < objects; ++i) {
                const int found = std::atomic_ref<int>(*reinterpret_cast<int*>(heap + i * 64 + 4)).load();
                ASSERT_TRUE(found == 0 || is_recorded(heap + i * 64));
            }
        }
        std::this_thread::yield();
    }
    stop = true;
}

TEST_F(SyncUses, ThatFillTheTableLeaveTheRestUnrecorded)
{
    const auto capacity = geometry.sync_objects_capacity;
    constexpr std::size_t listed_max = 8 + 1024;  // In the record of a thread, and beside the records.
    ASSERT_LT(capacity, listed_max);
    for (std::uint64_t i = 0; i <= capacity; ++i) {
        sync_uses::begin_lock(heap + i * 64, SyncObjectKind::mutex);
    }
    capture();
    EXPECT_EQ(entries(), capacity);
    sync_uses::forget(heap, image_bytes / 2);
    capture();
    EXPECT_EQ(entries(), 0u);
}

}  // namespace
}  // namespace stillpoint

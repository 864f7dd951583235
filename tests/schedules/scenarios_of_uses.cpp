// Synchronisation objects in durable memory: what a capture finds in use is what its bytes may show in use, and nothing else.

#include "runtime/sync_uses.hpp"
#include "tests/schedules/scenario_parts.hpp"

namespace stillpoint::schedules {

namespace {

constexpr std::uint64_t reused_mark = 1000;

void wait_in_semaphore() noexcept
{
    const bool is_listed = sync_uses::begin_call(&shared.semaphore, SyncObjectKind::semaphore);
    require(is_listed, "a use is not listed");
    shared.semaphore.fetch_add(1, std::memory_order_relaxed);
    shared.semaphore.fetch_sub(1, std::memory_order_relaxed);
    sync_uses::end_call(&shared.semaphore, SyncObjectKind::semaphore);
}

void capture() noexcept
{
    sync_uses::begin_capture();
    bool is_listed = false;
    sync_uses::for_each([](void* found, const void*, SyncObjectKind) { *static_cast<bool*>(found) = true; }, &is_listed);
    const std::uint64_t copied = shared.semaphore.load(std::memory_order_relaxed);
    require(copied == 0 || copied >= reused_mark || is_listed, "waiters are captured, and their object is not recorded");
    require(copied < reused_mark || !is_listed, "an object is recorded, and its memory is captured as something else");
    if (is_listed) {
        require(durable.words[0].read() == 0, "the memory of an object that is recorded is used while it is captured");
    }
    sync_uses::end_capture();
}

}  // namespace

void begin_with_uses() noexcept
{
    begin_with_membarrier();
    sync_uses::attached.store(true, std::memory_order_relaxed);
}

void user_or_capture(int thread)
{
    if (thread == 0) {
        wait_in_semaphore();
        shared.semaphore.store(reused_mark, std::memory_order_relaxed);
        durable.words[0].write(1);
        ++durable.finished[0];
    } else {
        capture();
        capture();
    }
}

void count_of_uses(int)
{
    require(sync_uses::begin_call(&shared.condition, SyncObjectKind::condition), "a use is not listed");
    require(sync_uses::begin_call(&shared.semaphore, SyncObjectKind::semaphore), "a use is not listed");
    int uses = 0;
    sync_uses::for_each([](void* count, const void*, SyncObjectKind) { ++*static_cast<int*>(count); }, &uses);
    require(uses == 2, "a use takes another one's place");
    sync_uses::end_call(&shared.condition, SyncObjectKind::condition);
    sync_uses::end_call(&shared.semaphore, SyncObjectKind::semaphore);
}

void two_users_or_capture(int thread)
{
    if (thread < 2) {
        wait_in_semaphore();
    } else {
        capture();
    }
}

void finish_without_uses() noexcept
{
    sync_uses::begin_capture();
    sync_uses::for_each([](void*, const void*, SyncObjectKind) { require(false, "a use has not ended"); }, nullptr);
    sync_uses::end_capture();
    sync_uses::attached.store(false, std::memory_order_relaxed);
    finish_clean();
}

}  // namespace stillpoint::schedules

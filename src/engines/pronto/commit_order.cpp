#include "engines/pronto/commit_order.hpp"

#include <array>
#include <mutex>

#include "os/log.hpp"
#include "runtime/held_locks.hpp"

namespace stillpoint::pronto::commit_order {

namespace {

/// A lock that an operation has held and released, and the operation has not committed.
struct ReleasedLock {
    const void* lock;
    const Operation* operation;
    std::uint64_t acquired;  ///< when: a number from `clock`
};

constinit std::atomic<bool> watching{false};
constinit std::atomic<std::uint64_t> clock{0};
constinit std::atomic<std::uint64_t> reports{0};

// No malloc here: the lock may be the program's allocator's.
constinit os::FutexLock released_lock;
constinit std::array<ReleasedLock, 512> released{};
constinit std::uint32_t released_count = 0;

/// The locks of the calling thread's operation; nullptr: the thread is in none.
OperationLocks* own_locks() noexcept
{
    ThreadLog* const thread = existing_thread_log();
    if (thread == nullptr || thread->current == nullptr) {
        return nullptr;
    }
    if (thread->held.operation != thread->current) {
        thread->held.operation = thread->current;
        thread->held.count = 0;
    }
    return &thread->held;
}

void acquiring(const void* lock) noexcept
{
    if (OperationLocks* const held = own_locks(); held != nullptr && held->count < held->locks.size()) {
        held->locks[held->count++] = {lock, clock.fetch_add(1, std::memory_order_relaxed)};
    }
}

void releasing(const void* lock) noexcept
{
    const OperationLocks* const held = own_locks();
    if (held == nullptr || held->operation->state >= Operation::committed) {
        return;
    }
    const std::lock_guard guard(released_lock);
    for (std::uint32_t i = held->count; i-- > 0;) {
        if (held->locks[i].lock == lock && released_count < released.size()) {
            released[released_count++] = {lock, held->operation, held->locks[i].when};
            return;
        }
    }
}

constexpr held_locks::Observer observer{&acquiring, &releasing};

const char* method_of(const Operation& operation) noexcept { return operation.object->type->methods[operation.program_method].name; }

}  // namespace

void begin() noexcept
{
    watching.store(true, std::memory_order_relaxed);
    held_locks::begin_observed(&observer);
}

void committing(const Operation& operation) noexcept
{
    const OperationLocks* const held = watching.load(std::memory_order_relaxed) ? own_locks() : nullptr;
    if (held == nullptr || held->operation != &operation) {
        return;
    }
    const std::lock_guard guard(released_lock);
    for (std::uint32_t i = 0; i < released_count; ++i) {
        const ReleasedLock& other = released[i];
        if (other.operation == &operation || other.operation->object != operation.object) {
            continue;
        }
        for (std::uint32_t k = 0; k < held->count; ++k) {
            if (held->locks[k].lock == other.lock && other.acquired < held->locks[k].when) {
                reports.fetch_add(1, std::memory_order_relaxed);
                os::log(os::Severity::error,
                        "the durable object \"{}\": an operation {} commits before an operation {} that has held the lock at {} before it "
                        "and released it without a commit: after a crash they would be run again in the wrong order. Commit before the "
                        "lock is released",
                        operation.object->name.data(), method_of(operation), method_of(*other.operation), other.lock);
                return;
            }
        }
    }
}

void finished(const Operation& operation) noexcept
{
    if (!watching.load(std::memory_order_relaxed)) {
        return;
    }
    const std::lock_guard guard(released_lock);
    std::uint32_t kept = 0;
    for (std::uint32_t i = 0; i < released_count; ++i) {
        if (released[i].operation != &operation) {
            released[kept++] = released[i];
        }
    }
    released_count = kept;
}

std::uint64_t reported() noexcept { return reports.load(std::memory_order_relaxed); }

}  // namespace stillpoint::pronto::commit_order

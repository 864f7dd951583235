#include "runtime/fase.hpp"

#include "core/sync.hpp"
#include "os/clock.hpp"
#include "os/futex_calls.hpp"
#include "os/thread_calls.hpp"
#include "runtime/fase_gate.hpp"
#include "runtime/held_locks.hpp"
#include "runtime/ignored_locks.hpp"
#include "runtime/section_ends.hpp"
#include "runtime/statistics.hpp"
#include "runtime/sync_uses.hpp"

namespace stillpoint {

namespace fase {

constinit Gate gate{};
constinit Departures departures{};
constinit Held held{};
constinit IgnoredFilter ignored_filter{};
[[gnu::tls_model("initial-exec")]] constinit thread_local ThreadRecord* own_record = nullptr;  // GCC forgets the declaration's here.

namespace {

constinit IgnoredLocks ignored_locks{};

/// Between a thread's publication and its look at the gate.
void order_publication() noexcept
{
    if ((gate.bits.load(std::memory_order_relaxed) & fences_needed) != 0) {
        sync::fence(std::memory_order_seq_cst);
    } else {
        sync::compiler_fence(std::memory_order_seq_cst);
    }
}

/// Publishes `depth` and tells a waiting checkpointer if that means outside.
void withdraw_publication(ThreadRecord& record, std::uint32_t depth) noexcept
{
    record.depth.store(depth, std::memory_order_release);
    if (depth == 0) {
        order_publication();
        if ((gate.bits.load(std::memory_order_relaxed) & gate_shut) != 0) {
            announce_departure();
        }
    }
}

void note_ignored(const void* lock, LockKind kind) noexcept
{
    switch (kind) {
    case LockKind::mutex: sync_uses::begin_lock(lock, SyncObjectKind::mutex); break;
    case LockKind::rwlock: sync_uses::begin_lock(lock, SyncObjectKind::rwlock); break;
    case LockKind::spinlock: sync_uses::begin_lock(lock, SyncObjectKind::spinlock); break;
    case LockKind::section: break;
    }
}

}  // namespace

bool is_ignored(const void* lock) noexcept
{
    const std::uint32_t bits = gate.bits.load(std::memory_order_relaxed);
    return lock != nullptr &&
           ((bits & no_lock_counts) != 0 || ((bits & locks_ignored) != 0 && ignored_filter.may_have(lock) && ignored_locks.contains(lock)));
}

void announce_departure() noexcept
{
    departures.count.fetch_add(1, std::memory_order_release);
    os::futex_wake(departures.count, 1);
}

void wait_while_shut() noexcept
{
    auto bits = gate.bits.load(std::memory_order_relaxed);  // The caller's look at the gate acquires.
    if ((bits & gate_shut) == 0) {
        return;
    }
    held.threads.fetch_add(1, std::memory_order_relaxed);
    while ((bits & gate_shut) != 0) {
        os::futex_wait(gate.bits, bits);
        bits = gate.bits.load(std::memory_order_relaxed);
    }
    const std::uint64_t now_ns = os::monotonic_ns();
    std::uint64_t before_ns = held.resumed_ns.load(std::memory_order_relaxed);
    while (before_ns < now_ns && !held.resumed_ns.compare_exchange_weak(before_ns, now_ns, std::memory_order_relaxed)) {
    }
    held.threads.fetch_sub(1, std::memory_order_release);
}

void enter_first(const void* lock, LockKind kind) noexcept
{
    if (attach_thread() != nullptr) {
        enter(lock, kind);
    }
}

void enter_slowly(ThreadRecord& record, const void* lock, LockKind kind, std::uint32_t depth) noexcept
{
    if (held_locks::are_listed()) [[unlikely]] {
        held_locks::add(record, lock, depth);
    }
    if (is_ignored(lock)) {
        withdraw_publication(record, depth);
        note_ignored(lock, kind);  // The lock may be held at a checkpoint: recovery must free it.
        return;
    }
    while (true) {
        order_publication();
        if ((gate.bits.load(std::memory_order_acquire) & gate_shut) == 0) {
            break;
        }
        // An inner lock of a FASE that passed the gate continues: the checkpoint waits for it. But a
        // signal handler may have come between an outermost publication and its check: that
        // FASE has not passed, and the handler must not write either.
        if (depth != 0 && record.lock.load(std::memory_order_relaxed) != ThreadRecord::no_lock) {
            break;
        }
        withdraw_publication(record, 0);
        wait_while_shut();
        record.depth.store(depth + 1, std::memory_order_relaxed);
    }
    if (depth == 0) {
        note_outermost(record, lock);
    }
}

void enter_nested(ThreadRecord& record, const void* lock, LockKind kind) noexcept
{
    const auto depth = record.depth.load(std::memory_order_relaxed);
    // No order is needed between the two: the outermost publication has been made, and a signal, if that
    // is what came between it and its check, comes between two instructions.
    record.depth.store(depth + 1, std::memory_order_relaxed);
    if (!is_clear_for(gate.bits.load(std::memory_order_acquire) & ~static_cast<std::uint32_t>(section_ends_told), lock)) [[unlikely]] {
        enter_slowly(record, lock, kind, depth);
    }
}

void leave_slowly(ThreadRecord& record, const void* lock) noexcept
{
    if (held_locks::are_listed()) [[unlikely]] {
        held_locks::remove(lock);
    }
    if (is_ignored(lock)) {
        sync_uses::end_lock(lock);
        return;
    }
    const auto depth = record.depth.load(std::memory_order_relaxed);
    if (depth == 0) {
        // Acquired before the accounting began, or by another thread.
        end_fase_left_behind(lock);
        return;
    }
    if (depth > 1) {
        if (record.lock.load(std::memory_order_relaxed) == reinterpret_cast<std::uintptr_t>(lock)) {
            record.lock.fetch_or(ThreadRecord::released_bit, std::memory_order_relaxed);
        }
        record.depth.store(depth - 1, std::memory_order_relaxed);
        return;
    }
    const bool is_section = lock == nullptr && section_ends::are_told();
    if (is_section) {
        section_ends::tell_section_ends();
    }
    record.lock.store(ThreadRecord::no_lock, std::memory_order_relaxed);
    withdraw_publication(record, 0);
    if (is_section) {
        section_ends::tell_ended();
    }
}

bool suspend_for_wait(const void* mutex) noexcept
{
    ThreadRecord* const record = own_record;
    if (record == nullptr || record->depth.load(std::memory_order_relaxed) != 1 || is_ignored(mutex)) {
        return false;
    }
    // The one lock that is counted must be this mutex, not another beside an uncounted mutex.
    const auto outermost = record->lock.load(std::memory_order_relaxed);
    if (outermost != reinterpret_cast<std::uintptr_t>(mutex) && (outermost & ThreadRecord::released_bit) == 0) {
        return false;
    }
    leave(mutex);
    return true;
}

bool resume_after_wait(const void* mutex) noexcept
{
    ThreadRecord& record = *own_record;
    record.depth.store(1, std::memory_order_relaxed);
    order_publication();
    if ((gate.bits.load(std::memory_order_acquire) & gate_shut) != 0) {
        withdraw_publication(record, 0);
        return false;
    }
    if (held_locks::are_listed()) [[unlikely]] {
        held_locks::add(record, mutex, 0);
    }
    record.lock.store(reinterpret_cast<std::uintptr_t>(mutex), std::memory_order_relaxed);
    record.section_begun.store(1, std::memory_order_relaxed);
    return true;
}

}  // namespace fase

void fase_enter(const void* lock) noexcept { fase::enter(lock, LockKind::section); }
void fase_leave(const void* lock) noexcept { fase::leave(lock); }

void fase_enter_section() noexcept
{
    fase_enter(nullptr);
    fase_note_section();
}

void fase_note_section() noexcept
{
    if (ThreadRecord* const record = fase::own_record; record != nullptr) {
        record->section_begun.store(1, std::memory_order_relaxed);
    }
}

void fase_pause() noexcept
{
    ThreadRecord* const record = fase::own_record;
    if (record == nullptr || record->pauses++ != 0) {
        return;
    }
    record->paused_depth = record->depth.load(std::memory_order_relaxed);
    record->paused_lock = record->lock.load(std::memory_order_relaxed);
    if (record->paused_depth != 0) {
        if (section_ends::are_told()) {
            section_ends::tell_section_ends();
        }
        record->lock.store(ThreadRecord::no_lock, std::memory_order_relaxed);
        fase::withdraw_publication(*record, 0);
    }
}

namespace {

/// Inside again after a pause. False: the gate is shut, and the thread is outside.
bool publish_paused(ThreadRecord& record) noexcept
{
    record.depth.store(record.paused_depth, std::memory_order_relaxed);
    fase::order_publication();
    if ((fase::gate.bits.load(std::memory_order_acquire) & fase::gate_shut) != 0) {
        fase::withdraw_publication(record, 0);
        return false;
    }
    record.lock.store(record.paused_lock, std::memory_order_relaxed);
    record.section_begun.store(1, std::memory_order_relaxed);
    return true;
}

}  // namespace

void fase_resume() noexcept
{
    ThreadRecord* const record = fase::own_record;
    if (record == nullptr || record->pauses == 0 || --record->pauses != 0 || record->paused_depth == 0) {
        return;
    }
    while (!publish_paused(*record)) {
        // The thread's locks stay held. Another thread inside that needs one of them makes the attempt end without a stop.
        fase::wait_while_shut();
    }
}

bool fase_try_resume() noexcept
{
    ThreadRecord* const record = fase::own_record;
    if (record == nullptr || record->pauses == 0) {
        return true;
    }
    if (record->pauses > 1 || record->paused_depth == 0 || publish_paused(*record)) {
        --record->pauses;
        return true;
    }
    return false;
}

bool inside_fase() noexcept
{
    const ThreadRecord* record = fase::own_record;
    return record != nullptr && record->depth.load(std::memory_order_relaxed) != 0;
}

Result<void> fase_activate(FaseBarrier barrier)
{
    if (!thread_registry_start()) {
        return fail(SP_E_NO_MEMORY, 0,
                    "the process has no thread-specific key left (PTHREAD_KEYS_MAX); Stillpoint "
                    "needs one");
    }
    const bool membarrier = barrier == FaseBarrier::automatic && os::register_for_membarrier();
    if (membarrier) {
        fase::gate.bits.fetch_and(~static_cast<std::uint32_t>(fase::fences_needed), std::memory_order_relaxed);
    } else {
        fase::gate.bits.fetch_or(fase::fences_needed, std::memory_order_relaxed);
    }
    thread_registry_enable(true);
    return {};
}

void fase_deactivate() noexcept
{
    thread_registry_enable(false);
    fase::gate.bits.fetch_and(~static_cast<std::uint32_t>(fase::no_lock_counts));
}

void fase_count_no_locks() noexcept { fase::gate.bits.fetch_or(fase::no_lock_counts); }

void fase_reset_after_fork() noexcept
{
    statistics_close();  // The shared page is the parent's.
    fase::ignored_locks.reset_after_fork();
    sync_uses::reset_after_fork();
    fase::gate.bits.fetch_and(~static_cast<std::uint32_t>(fase::gate_shut));
    thread_registry_enable(false);
    fase::held.threads.store(0, std::memory_order_relaxed);
    thread_registry_reset_after_fork();
}

Result<void> fase_ignore_lock(const void* lock)
{
    if (lock == nullptr) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "sp_lock_ignore: the lock is NULL");
    }
    fase::ignored_filter.add(lock);
    if (!fase::ignored_locks.add(lock)) {
        return fail(SP_E_NO_MEMORY, 0, "sp_lock_ignore: {} locks are ignored already, the maximum", IgnoredLocks::capacity);
    }
    fase::gate.bits.fetch_or(fase::locks_ignored);
    return {};
}

void fase_forget_lock(const void* lock) noexcept
{
    if ((fase::gate.bits.load(std::memory_order_relaxed) & fase::locks_ignored) != 0) {
        fase::ignored_locks.remove(lock);
    }
}

void fase_forget_locks(const void* address, std::size_t size) noexcept
{
    if ((fase::gate.bits.load(std::memory_order_relaxed) & fase::locks_ignored) != 0) {
        fase::ignored_locks.remove_in(address, size);
    }
}

}  // namespace stillpoint

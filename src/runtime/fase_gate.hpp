#pragma once
// The inlined fast path of FASE accounting. Lock order: none; nothing here takes a lock but the
// first use by a thread (the registry's).
//
// Cost when no checkpoint is being taken: enter is one thread-local load, two stores and one load of a shared
// word that is rarely written; leave is two stores and two loads of that word. No fence, no locked instruction.

#include <array>
#include <atomic>
#include <cstdint>

#include "core/sync.hpp"
#include "core/units.hpp"
#include "runtime/thread_registry.hpp"

namespace stillpoint {

/// The kind of lock a FASE begins with: recovery re-initialises ignored ones by it.
enum class LockKind : std::uint8_t { section, mutex, rwlock, spinlock };

namespace fase {

/// Bits of the gate. Zero, nearly always, lets everything pass.
enum GateBit : std::uint32_t {
    gate_shut = 1,       ///< a checkpoint waits for, or is in, a quiescent state
    locks_ignored = 2,   ///< sp_lock_ignore was called: look each lock up
    fences_needed = 4,   ///< no membarrier: publish with a full fence
    libc_only = 8,       ///< plain mutexes are not as expected: none is locked in line
    no_lock_counts = 32,   ///< as if each lock were ignored: sections and calls of the runtime are FASEs, locks are not
    section_ends_told = 64,  ///< an engine is told of each release before it happens (section_ends.hpp)
    locks_listed = 16,   ///< checks of debug builds: each thread lists the locks that it holds (held_locks.hpp)
};

/// Alone in its line: every thread reads it at every lock.
struct alignas(128) Gate {
    sync::Atomic<std::uint32_t> bits{0};
    sync::Atomic<bool> accounting{false};  ///< looked at only by threads that have no record yet, as is the next
    /// No thread is counted, and plain mutexes are as expected: a thread without a record locks them in line and does nothing else.
    sync::Atomic<bool> locks_plainly{false};
};
[[gnu::visibility("hidden")]] extern constinit Gate gate;  // Hidden: addressed without the GOT.

/// Which locks may be ignored ones: a bit for each value of a hash. So most others are told from those by one load, and take the ways
/// of a clear gate. Bits are never cleared: a lock that is ignored no longer is looked up as before.
struct alignas(cache_line_bytes) IgnoredFilter {
    void add(const void* lock) noexcept
    {
        words[place_of(lock) / 64].fetch_or(std::uint64_t{1} << place_of(lock) % 64, std::memory_order_relaxed);
    }
    [[nodiscard]] bool may_have(const void* lock) const noexcept
    {
        return (words[place_of(lock) / 64].load(std::memory_order_relaxed) >> place_of(lock) % 64 & 1) != 0;
    }
    [[nodiscard]] static std::size_t place_of(const void* lock) noexcept
    {
        return (reinterpret_cast<std::uintptr_t>(lock) * 0x9e3779b97f4a7c15u) >> 55;  // 9 bits
    }
    std::array<sync::Atomic<std::uint64_t>, 8> words{};
};
[[gnu::visibility("hidden")]] extern constinit IgnoredFilter ignored_filter;

/// True if `lock` counts as with a clear gate: `bits` tell of nothing but ignored locks, and it is none of them.
[[gnu::always_inline]] inline bool is_clear_for(std::uint32_t bits, const void* lock) noexcept
{
    return bits == 0 || (bits == locks_ignored && !ignored_filter.may_have(lock));
}

/// Counts wake-ups of a checkpointer that waits for threads to leave.
struct alignas(128) Departures {
    sync::Atomic<std::uint32_t> count{0};
};
[[gnu::visibility("hidden")]] extern constinit Departures departures;

/// Threads that a shut gate holds: only figures come of it.
struct alignas(128) Held {
    std::atomic<std::uint32_t> threads{0};
    std::atomic<std::uint64_t> resumed_ns{0};  ///< os::monotonic_ns() when the last one ran again
};
[[gnu::visibility("hidden")]] extern constinit Held held;

/// initial-exec: one instruction, and never a call that may allocate.
extern constinit thread_local ThreadRecord* own_record [[gnu::tls_model("initial-exec"), gnu::visibility("hidden")]];

void enter_first(const void* lock, LockKind kind) noexcept;
void enter_nested(ThreadRecord& record, const void* lock, LockKind kind) noexcept;
[[gnu::cold]] void enter_slowly(ThreadRecord& record, const void* lock, LockKind kind, std::uint32_t depth) noexcept;
void leave_slowly(ThreadRecord& record, const void* lock) noexcept;
/// Holding the lock is no FASE: sp_lock_ignore was called for it.
[[nodiscard]] bool is_ignored(const void* lock) noexcept;
/// Tells a checkpointer that waits that a thread is outside now.
[[gnu::cold]] void announce_departure() noexcept;
/// Returns when the gate is, or was, open.
void wait_while_shut() noexcept;

/// The result of try_enter.
enum class Entry { inside, gate_not_clear, nested };

/// The thread has passed the gate: which lock it is that its FASE began with.
[[gnu::always_inline]] inline void note_outermost(ThreadRecord& record, const void* lock) noexcept
{
    record.lock.store(reinterpret_cast<std::uintptr_t>(lock), std::memory_order_relaxed);
    if (lock != nullptr) {  // A section; a call of the heap is none (section_watch.hpp).
        record.section_begun.store(1, std::memory_order_relaxed);
    }
}

/// The common case of enter, for the thread that `record` belongs to: its outermost lock, the gate clear.
/// gate_not_clear: published; enter_after_look must follow. nested: nothing is done yet.
[[gnu::always_inline]] inline Entry try_enter(ThreadRecord& record, const void* lock) noexcept
{
    if (record.depth.load(std::memory_order_relaxed) != 0) [[unlikely]] {
        return Entry::nested;
    }
    // A constant, not depth + 1: the store need not wait for the load, and nor need the locked
    // instruction of the acquire that follows it.
    record.depth.store(1, std::memory_order_relaxed);
    // Publish before check. The compiler is held here, the CPU by the checkpointer's membarrier.
    sync::compiler_fence(std::memory_order_seq_cst);
    // An engine that is told of releases has no part in an acquire.
    if ((gate.bits.load(std::memory_order_acquire) & ~static_cast<std::uint32_t>(section_ends_told)) != 0) [[unlikely]] {
        return Entry::gate_not_clear;
    }
    note_outermost(record, lock);
    return Entry::inside;
}

/// After try_enter's gate_not_clear, with the gate looked at again.
[[gnu::always_inline]] inline void enter_after_look(ThreadRecord& record, const void* lock, LockKind kind) noexcept
{
    if (is_clear_for(gate.bits.load(std::memory_order_acquire) & ~static_cast<std::uint32_t>(section_ends_told), lock)) {
        note_outermost(record, lock);
    } else {
        enter_slowly(record, lock, kind, 0);
    }
}

/// True if leave_outermost may be used: one lock is held, and the gate is clear.
[[gnu::always_inline]] inline bool is_plain_leave(const ThreadRecord& record) noexcept
{
    return record.depth.load(std::memory_order_relaxed) == 1 && gate.bits.load(std::memory_order_relaxed) == 0;
}

/// Likewise for a lock whose release the engine has been told of.
[[gnu::always_inline]] inline bool is_plain_told_leave(const ThreadRecord& record) noexcept
{
    return record.depth.load(std::memory_order_relaxed) == 1 && gate.bits.load(std::memory_order_relaxed) == section_ends_told;
}

/// True if announce_departure must follow. `clear`: the gate's bits while no checkpoint waits.
[[gnu::always_inline]] inline bool leave_outermost(ThreadRecord& record, std::uint32_t clear = 0) noexcept
{
    record.lock.store(ThreadRecord::no_lock, std::memory_order_relaxed);
    record.depth.store(0, std::memory_order_release);
    sync::compiler_fence(std::memory_order_seq_cst);
    // Same argument as in enter: this load sees the gate shut, or the checkpointer sees depth 0.
    return gate.bits.load(std::memory_order_relaxed) != clear;
}

/// The common case of a release inside another lock: the gate clear for it, and not the outermost lock. False: nothing is done yet,
/// leave_slowly must follow.
[[gnu::always_inline]] inline bool leave_nested(ThreadRecord& record, const void* lock) noexcept
{
    const auto depth = record.depth.load(std::memory_order_relaxed);
    if (depth < 2 || !is_clear_for(gate.bits.load(std::memory_order_relaxed), lock) ||
        record.lock.load(std::memory_order_relaxed) == reinterpret_cast<std::uintptr_t>(lock)) [[unlikely]] {
        return false;
    }
    record.depth.store(depth - 1, std::memory_order_relaxed);
    return true;
}

[[gnu::always_inline]] inline void enter_counted(ThreadRecord& record, const void* lock, LockKind kind) noexcept
{
    const Entry entry = try_enter(record, lock);
    if (entry == Entry::gate_not_clear) [[unlikely]] {
        enter_after_look(record, lock, kind);
    } else if (entry == Entry::nested) [[unlikely]] {
        enter_nested(record, lock, kind);
    }
}

[[gnu::always_inline]] inline void leave_counted(ThreadRecord& record, const void* lock) noexcept
{
    if (!is_plain_leave(record)) [[unlikely]] {
        if (!leave_nested(record, lock)) [[unlikely]] {
            leave_slowly(record, lock);
        }
    } else if (leave_outermost(record)) [[unlikely]] {
        announce_departure();
    }
}

/// As leave_counted, after section_ends::tell_release().
[[gnu::always_inline]] inline void leave_told(ThreadRecord& record, const void* lock) noexcept
{
    if (!is_plain_told_leave(record)) [[unlikely]] {
        leave_counted(record, lock);
    } else if (leave_outermost(record, section_ends_told)) [[unlikely]] {
        announce_departure();
    }
}

inline void enter(const void* lock, LockKind kind) noexcept
{
    if (ThreadRecord* const record = own_record; record != nullptr) [[likely]] {
        enter_counted(*record, lock, kind);
    } else if (gate.accounting.load(std::memory_order_relaxed)) {
        enter_first(lock, kind);
    }
}

inline void leave(const void* lock) noexcept
{
    if (ThreadRecord* const record = own_record; record != nullptr) [[likely]] {
        leave_counted(*record, lock);
    }
}

/// FaseGuard for calls so short that two function calls would show: sp_malloc and sp_free.
class InlineGuard {
public:
    InlineGuard() noexcept : entered_(!is_part_of_fase())
    {
        if (entered_) {
            enter(nullptr, LockKind::section);
        }
    }
    ~InlineGuard()
    {
        if (entered_) {
            leave(nullptr);
        }
    }
    InlineGuard(const InlineGuard&) = delete;
    InlineGuard& operator=(const InlineGuard&) = delete;

private:
    /// Inside already, and through the gate (not a signal handler that came before its thread's look at it).
    [[gnu::always_inline]] static bool is_part_of_fase() noexcept
    {
        const ThreadRecord* const record = own_record;
        return record != nullptr && record->depth.load(std::memory_order_relaxed) != 0 &&
               record->lock.load(std::memory_order_relaxed) != ThreadRecord::no_lock;
    }

    bool entered_;
};

/// Before a condition wait that will release `mutex`: if that is all the thread holds, its FASE
/// ends here. True: resume() must be tried when the wait has returned with the mutex.
[[nodiscard]] bool suspend_for_wait(const void* mutex) noexcept;
/// After the wait, with `mutex` held: inside again, or false if the gate is shut; the thread is then
/// still outside, and must not write durable memory before a later attempt succeeds.
[[nodiscard]] bool resume_after_wait(const void* mutex) noexcept;

}  // namespace fase
}  // namespace stillpoint

#include "runtime/thread_registry.hpp"

#include <climits>
#include <sys/syscall.h>
#include <sysexits.h>
#include <unistd.h>

#include "core/sync.hpp"
#include "os/futex.hpp"
#include "os/log.hpp"
#include "os/thread_calls.hpp"
#include "runtime/fase.hpp"
#include "runtime/fase_gate.hpp"
#include "runtime/statistics.hpp"
#include "runtime/sync_uses.hpp"

namespace stillpoint {

/// Records come from chunks of this size; they are never given back. Pointers to chunks and
/// the number of used records are relaxed: a record of zeroes, as the kernel gives it, says outside, and a thread that
/// publishes before the checkpointer's membarrier has its whole record seen after it, a later one is held.
struct RecordChunk {
    static constexpr std::size_t bytes = os::zeroed_memory_unit;
    static constexpr std::size_t capacity = bytes / sizeof(ThreadRecord) - 1;

    sync::Atomic<RecordChunk*> next;
    sync::Atomic<std::size_t> used;
    ThreadRecord records[capacity];
};
static_assert(sizeof(RecordChunk) <= RecordChunk::bytes);

void end_for_uncounted_thread(const char* what) noexcept
{
    os::log(os::Severity::error,
            "no memory for {} (thread {}); the program ends here, because a thread that is not counted could "
            "spoil a checkpoint",
            what, os::thread_id());
    syscall(SYS_exit_group, EX_OSERR);
    __builtin_unreachable();
}

namespace {

/// Lock order: last of all; nothing is taken while it is held.
constinit os::FutexLock registry_lock{};
constinit sync::Atomic<RecordChunk*> first_chunk{nullptr};
constinit RecordChunk* last_chunk = nullptr;
constinit ThreadRecord* unused_records = nullptr;
constinit bool key_made = false;
constinit os::ExitKey exit_key{};
using ExitHook = void (*)() noexcept;
constinit ExitHook exit_hook = nullptr;

/// Signals are blocked while the registry is locked: a handler that takes its thread's first
/// lock would else wait for itself.
class RegistryGuard {
public:
    RegistryGuard() noexcept { registry_lock.lock(); }
    ~RegistryGuard() { registry_lock.unlock(); }
    RegistryGuard(const RegistryGuard&) = delete;
    RegistryGuard& operator=(const RegistryGuard&) = delete;

private:
    os::SignalsBlocked blocked_;
};

RecordChunk* append_chunk() noexcept
{
    void* memory = os::zeroed_memory(RecordChunk::bytes);
    if (memory == nullptr) {
        end_for_uncounted_thread("a thread's record");
    }
    auto* chunk = static_cast<RecordChunk*>(memory);  // Zeroes are its initial state.
    if (last_chunk == nullptr) {
        first_chunk.store(chunk, std::memory_order_relaxed);
    } else {
        last_chunk->next.store(chunk, std::memory_order_relaxed);
    }
    last_chunk = chunk;
    return chunk;
}

template <class Visit>
void for_each_record(Visit&& visit) noexcept
{
    for (auto* chunk = first_chunk.load(std::memory_order_relaxed); chunk != nullptr; chunk = chunk->next.load(std::memory_order_relaxed)) {
        const auto used = chunk->used.load(std::memory_order_relaxed);
        for (std::size_t i = 0; i < used; ++i) {
            visit(chunk->records[i]);
        }
    }
}

void recycle(ThreadRecord& record) noexcept
{
    sync_uses::drop(record);
    record.state.store(ThreadRecord::unused, std::memory_order_relaxed);
    record.thread_id.store(0, std::memory_order_relaxed);
    record.next_unused = unused_records;
    unused_records = &record;
    statistics().threads.fetch_sub(1, std::memory_order_relaxed);
}

/// A thread that locks after its last key destructor is attached again and never detached: such
/// records are found here, when a chunk is used up, by their threads being gone.
void reclaim_records_of_ended_threads() noexcept
{
    for_each_record([](ThreadRecord& record) {
        if (record.state.load(std::memory_order_relaxed) == ThreadRecord::live && record.depth.load(std::memory_order_relaxed) == 0 &&
            os::thread_is_gone(record.thread_id.load(std::memory_order_relaxed))) {
            recycle(record);
        }
    });
}

ThreadRecord& take_record() noexcept
{
    if (unused_records == nullptr && last_chunk != nullptr && last_chunk->used.load(std::memory_order_relaxed) == RecordChunk::capacity) {
        reclaim_records_of_ended_threads();
    }
    if (unused_records != nullptr) {
        ThreadRecord& record = *unused_records;
        unused_records = record.next_unused;
        return record;
    }
    RecordChunk* chunk = last_chunk;
    if (chunk == nullptr || chunk->used.load(std::memory_order_relaxed) == RecordChunk::capacity) {
        chunk = append_chunk();
    }
    const auto index = chunk->used.load(std::memory_order_relaxed);
    ThreadRecord& record = chunk->records[index];
    record.lock.store(ThreadRecord::no_lock, std::memory_order_relaxed);
    chunk->used.store(index + 1, std::memory_order_relaxed);
    return record;
}

void report_fase_left_behind(const ThreadRecord& record) noexcept
{
    os::log(os::Severity::warning,
            "thread {} ended while it holds the lock at {:#x}; until that lock is released no "
            "checkpoint can be taken",
            record.thread_id.load(std::memory_order_relaxed), record.lock.load(std::memory_order_relaxed) & ~ThreadRecord::released_bit);
}

/// Destructor of the key. Other keys' destructors may still use locks in later rounds, so the thread is detached
/// as late as can be; the last round belongs to the sanitizers, which forget the thread there.
extern "C" void detach_thread(void* argument)
{
    auto& record = *static_cast<ThreadRecord*>(argument);
    if (++record.exit_rounds < PTHREAD_DESTRUCTOR_ITERATIONS - 1) {
        os::set_exit_value(exit_key, &record);
        return;
    }
    if (exit_hook != nullptr && fase::gate.accounting.load(std::memory_order_relaxed)) {
        exit_hook();
    }
    // A robust mutex passes to its next owner with EOWNERDEAD: the kernel ends what it guarded.
    const auto depth = record.depth.load(std::memory_order_relaxed);
    if (depth != 0) {
        const auto robust = count_robust_locks_held([](void* mutex) noexcept { sync_uses::mutex_orphaned(mutex); });
        for (std::uint32_t i = 0; i < (robust < depth ? robust : depth); ++i) {
            fase_leave(nullptr);
        }
    }
    sync_uses::thread_ended();
    fase::own_record = nullptr;
    const RegistryGuard guard;
    if (record.depth.load(std::memory_order_relaxed) != 0) {
        report_fase_left_behind(record);
        record.state.store(ThreadRecord::ended_inside, std::memory_order_relaxed);
        return;
    }
    recycle(record);
}

}  // namespace

ThreadRecord* attach_thread() noexcept
{
    if (!fase::gate.accounting.load(std::memory_order_acquire)) {
        return nullptr;
    }
    {
        const RegistryGuard guard;
        if (fase::own_record != nullptr) {
            return fase::own_record;
        }
        ThreadRecord& record = take_record();
        record.exit_rounds = 0;
        record.pauses = 0;  // The record's last thread may have ended in a pause.
        record.thread_id.store(os::thread_id(), std::memory_order_relaxed);
        record.state.store(ThreadRecord::live, std::memory_order_relaxed);
        fase::own_record = &record;
        statistics().threads.fetch_add(1, std::memory_order_relaxed);
    }
    // After own_record is set: for a key beyond the 32nd glibc allocates, and malloc may lock.
    os::set_exit_value(exit_key, fase::own_record);
    return fase::own_record;
}

bool thread_registry_start() noexcept
{
    const RegistryGuard guard;
    if (!key_made) {
        key_made = os::make_exit_key(exit_key, &detach_thread);
    }
    return key_made;
}

void thread_registry_enable(bool enable) noexcept
{
    fase::gate.accounting.store(enable, std::memory_order_release);
    // The interposer has looked at plain mutexes when it started; without it nothing locks them in line.
    fase::gate.locks_plainly.store(!enable && (fase::gate.bits.load(std::memory_order_relaxed) & fase::libc_only) == 0,
                                   std::memory_order_release);
}

void thread_registry_reset_after_fork() noexcept
{
    registry_lock.reset_after_fork();
    for_each_record([](ThreadRecord& record) {
        if (&record == fase::own_record) {
            record.thread_id.store(os::thread_id(), std::memory_order_relaxed);
        } else if (record.state.load(std::memory_order_relaxed) != ThreadRecord::unused) {
            record.depth.store(0, std::memory_order_relaxed);
            record.lock.store(ThreadRecord::no_lock, std::memory_order_relaxed);
            recycle(record);
        }
    });
}

bool end_fase_left_behind(const void* lock) noexcept
{
    const auto is_left_behind = [lock](const ThreadRecord& record) {
        return record.state.load(std::memory_order_relaxed) == ThreadRecord::ended_inside &&
               record.depth.load(std::memory_order_relaxed) == 1 &&
               record.lock.load(std::memory_order_relaxed) == reinterpret_cast<std::uintptr_t>(lock);
    };
    bool ended = false;
    for_each_record([&](ThreadRecord& record) {
        if (ended || !is_left_behind(record)) {
            return;
        }
        const RegistryGuard guard;
        // All of it again: the record may be another thread's by now, which ended with another lock.
        if (is_left_behind(record)) {
            record.lock.store(ThreadRecord::no_lock, std::memory_order_relaxed);
            record.depth.store(0, std::memory_order_release);
            recycle(record);
            ended = true;
        }
    });
    if (ended) {
        fase::announce_departure();
    }
    return ended;
}

bool take_sections_begun() noexcept
{
    bool any = false;
    for_each_record([&](ThreadRecord& record) {
        if (record.section_begun.load(std::memory_order_relaxed) != 0) {
            record.section_begun.store(0, std::memory_order_relaxed);
            any = true;
        }
    });
    return any;
}

void set_thread_exit_hook(void (*hook)() noexcept) noexcept { exit_hook = hook; }

ThreadWalk::ThreadWalk() noexcept : chunk_(first_chunk.load(std::memory_order_relaxed)) {}

const ThreadRecord* ThreadWalk::current() const noexcept
{
    if (chunk_ == nullptr || index_ >= chunk_->used.load(std::memory_order_relaxed)) {
        return nullptr;
    }
    return &chunk_->records[index_];
}

void ThreadWalk::advance() noexcept
{
    if (++index_ == RecordChunk::capacity) {
        chunk_ = chunk_->next.load(std::memory_order_relaxed);
        index_ = 0;
    }
}

}  // namespace stillpoint

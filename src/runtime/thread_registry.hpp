#pragma once
// The registry of threads that have used a lock: one record each, in memory that is never
// unmapped, so that the checkpointer may read any record at any time. Records are recycled.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/sync.hpp"

namespace stillpoint {

/// The record that one thread publishes. Only the owner stores into depth and lock; 128 bytes, because the
/// adjacent-line prefetcher would else make two threads share.
struct alignas(128) ThreadRecord {
    /// No FASE, or one whose gate check is not done yet: a signal handler that finds it there is held itself.
    static constexpr std::uintptr_t no_lock = 2;
    /// The outermost lock was released while an inner one stayed held (hand-over-hand).
    static constexpr std::uintptr_t released_bit = 1;

    enum State : std::uint32_t {
        unused = 0,
        live = 1,
        ended_inside = 2,  ///< the thread is gone and left a lock held: its FASE never ends
    };

    sync::Atomic<std::uint32_t> depth;  ///< counted locks held; not 0: inside a FASE
    sync::Atomic<std::uint32_t> state;
    sync::Atomic<std::uintptr_t> lock;  ///< outermost lock (0: sp_fase_begin or a heap call), or no_lock
    sync::Atomic<int> thread_id;        ///< of the kernel
    unsigned exit_rounds;              ///< how often the key's destructor has run for this thread
    std::uint32_t pauses;              ///< fase_pause calls that wait for their fase_resume
    std::uint32_t paused_depth;        ///< depth and lock of the FASE that the outermost of them has left
    std::uintptr_t paused_lock;
    /// A lock or sp_fase_begin has begun a FASE since the last look of take_sections_begun(): a heap call has not. No word of the protocol.
    std::atomic<std::uint8_t> section_begun;
    ThreadRecord* next_unused;
    /// Synchronisation objects in durable memory that the thread uses (sync_uses.hpp). It lists them; a thread that
    /// destroys one, or frees its memory, takes them out.
    mutable std::array<sync::Atomic<std::uintptr_t>, 8> uses;
};
static_assert(sizeof(ThreadRecord) == 128);

/// Attaches the calling thread. nullptr: accounting is off. Without DRAM for a record it ends the program:
/// a thread that is not counted would make checkpoints wrong. Blocks signals while it runs; no malloc.
[[nodiscard]] ThreadRecord* attach_thread() noexcept;

/// Makes the key whose destructor detaches threads. False: the process has no key left.
[[nodiscard]] bool thread_registry_start() noexcept;
void thread_registry_enable(bool enabled) noexcept;
void thread_registry_reset_after_fork() noexcept;

/// A lock that a thread left held at its end is released by another: if that was all the dead
/// thread held, its FASE is over. True if so.
bool end_fase_left_behind(const void* lock) noexcept;

/// Whether a section of the program, as opposed to a call of the heap, has begun since this was asked last. In a stop: no thread may begin
/// one meanwhile.
[[nodiscard]] bool take_sections_begun() noexcept;

/// Walks the records in a fixed order; new ones are appended. Threads: lock-free, at any time.
class ThreadWalk {
public:
    ThreadWalk() noexcept;
    /// The record the walk stands at; nullptr at the end.
    [[nodiscard]] const ThreadRecord* current() const noexcept;
    void advance() noexcept;

private:
    const struct RecordChunk* chunk_;
    std::size_t index_ = 0;
};

/// Recursion counts of all robust mutexes the calling thread holds, in its list that the kernel
/// walks when the thread dies. `visit` (may be null) is called with each mutex.
[[nodiscard]] std::uint32_t count_robust_locks_held(void (*visit)(void* mutex) noexcept) noexcept;

/// Ends the process, exit code 71 (EX_OSERR), and says that there is no memory for `what` of a thread: a thread that is not counted could
/// spoil a checkpoint, and a call that begins a FASE has no error to return.
[[noreturn]] void end_for_uncounted_thread(const char* what) noexcept;

}  // namespace stillpoint

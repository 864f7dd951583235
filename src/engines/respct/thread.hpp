#pragma once
// The state of one thread in the engine respct: whether it stands at a restart point, its frame, and the lines it has written.
//
// Between two restart points a thread is inside a FASE of its own (fase.hpp), which a restart point leaves and enters again if a
// checkpoint wants it. So quiescence.cpp, which waits for FASEs, waits for restart points.
//
// Lines: a list for each parity of the epoch. A thread appends to that of the running epoch; when every thread has passed into the next
// epoch the flushers have the other list to themselves, until that epoch is durable [ResPCT §3.2.2, §5: per-thread lists].

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/logged_words.hpp"
#include "core/units.hpp"
#include "engines/respct/locks.hpp"
#include "stillpoint/respct.h"
#include "runtime/fase_gate.hpp"

namespace stillpoint::respct {

/// A piece of a list. Never given back to the system: an epoch has about as many lines as the one before.
struct LineChunk {
    static constexpr std::size_t bytes = 64 * kib;
    static constexpr std::size_t capacity = bytes / sizeof(std::uintptr_t) - 2;

    LineChunk* next;
    std::size_t count;
    std::uintptr_t lines[capacity];
};
static_assert(sizeof(LineChunk) == LineChunk::bytes);

struct LineList {
    LineChunk* first = nullptr;
    LineChunk* last = nullptr;  ///< the one that is appended to; after it lie empty ones
};

struct alignas(128) Thread {
    /// Lines noted lately, so that few are noted twice in an epoch: one for each remainder of a line's number, with the quotient in the
    /// upper half and the epoch's lower half in the lower one. An address of an image has less than 2^49; a quotient of 0 is in none.
    static constexpr std::size_t recent_count = 2048;

    bool is_inside = false;  ///< between restart points: its FASE has begun
    bool is_allowed = false;  ///< between checkpoint_allow and checkpoint_prevent
    bool has_written = false;  ///< something durable, since its last restart point
    std::atomic<std::byte*> frame{nullptr};  ///< an SP_RESPCT_LOGGED_4 variable, or nullptr; its owner stores, others look
    std::atomic<std::uint64_t> recent_epoch{0};  ///< of the line noted last; its owner stores, the checkpoint thread looks
    std::array<LineList, 2> lists{};  ///< by the parity of the epoch
    std::atomic<bool> is_used{false};
    Thread* next = nullptr;  ///< of all that were ever made
    std::array<std::uint64_t, recent_count> recent{};  ///< 16 KiB: a CPU's first cache holds twice as much
};

/// The calling thread's; nullptr before its first use. Initial-exec: one instruction, and never a call that may allocate.
extern constinit thread_local Thread* own_thread [[gnu::tls_model("initial-exec"), gnu::visibility("hidden")]];

/// The engine's bookkeeping is on: without it every call of respct.h works on ordinary memory.
[[gnu::visibility("hidden")]] extern constinit std::atomic<bool> active;
/// Present size of the image, which begins at window_base.
[[gnu::visibility("hidden")]] extern constinit std::atomic<std::uint64_t> image_bytes;
/// The running epoch, for the program (sp_respct_running) and for the heap (core/logged_words.hpp). 0: none runs.
void set_running_epoch(std::uint64_t epoch) noexcept;
/// The number that epoch words of the program compare with.
[[nodiscard]] inline std::uint64_t running() noexcept { return __atomic_load_n(&sp_respct_running, __ATOMIC_RELAXED); }
inline void set_active(bool on) noexcept { active.store(on, std::memory_order_release); }
[[nodiscard]] inline bool is_active() noexcept { return active.load(std::memory_order_relaxed); }

/// Makes room in the list of the epoch's parity and appends; or counts the line as lost.
[[gnu::cold]] void append_to_full_list(Thread& thread, std::uintptr_t line, std::uint64_t epoch) noexcept;
/// The first line that it notes in the epoch.
[[gnu::cold]] void begin_epoch_of(Thread& thread, std::uint64_t epoch) noexcept;
/// Registers the calling thread.
[[gnu::cold]] Thread& register_thread() noexcept;
[[gnu::cold]] void enter_inside(Thread& thread) noexcept;

/// Usually true: the calling thread is inside, so it has a Thread.
[[gnu::always_inline]] inline bool takes_part() noexcept { return (sp_respct_locks & locks_go_slowly) == 0; }

/// Notes one line of the running epoch, which does not change meanwhile.
[[gnu::always_inline]] inline void note_line(Thread& thread, std::uintptr_t line, std::uint64_t epoch) noexcept
{
    if (thread.recent_epoch.load(std::memory_order_relaxed) != epoch) [[unlikely]] {
        begin_epoch_of(thread, epoch);
    }
    const std::uintptr_t number = line / cache_line_bytes;
    const std::uint64_t noted = number / Thread::recent_count << 32 | static_cast<std::uint32_t>(epoch);
    std::uint64_t& recent = thread.recent[number % Thread::recent_count];
    if (recent == noted) {
        return;
    }
    recent = noted;
    LineChunk* const last = thread.lists[epoch & 1].last;
    if (last != nullptr && last->count != LineChunk::capacity) [[likely]] {
        last->lines[last->count++] = line;
        return;
    }
    append_to_full_list(thread, line, epoch);
}

/// Notes the lines of [address, +size): the calling thread is inside a FASE, so the epoch does not change.
void note_lines(const void* address, std::size_t size_bytes) noexcept;

/// The usual case: no checkpoint waits, no lock is held, no frame is bound. False: nothing was done, restart_point() must follow.
[[gnu::always_inline]] inline bool pass_restart_point() noexcept
{
    if (sp_respct_locks != 0) [[unlikely]] {
        return false;  // The thread takes no part yet, or holds a lock.
    }
    Thread* const thread = own_thread;
    const ThreadRecord* const record = fase::own_record;
    if (thread->frame.load(std::memory_order_relaxed) != nullptr || record == nullptr ||
        record->depth.load(std::memory_order_relaxed) != 1 || (fase::gate.bits.load(std::memory_order_relaxed) & fase::gate_shut) != 0)
        [[unlikely]] {
        return false;
    }
    thread->has_written = false;
    return true;
}
/// The thread passes a restart point, or its first one.
void restart_point(int id, const char* file, unsigned line) noexcept;
/// The thread is inside from here on, if it was not.
[[gnu::always_inline]] inline Thread& ensure_inside() noexcept
{
    Thread& thread = own_thread != nullptr ? *own_thread : register_thread();
    if (!thread.is_inside) [[unlikely]] {
        enter_inside(thread);
    }
    return thread;
}
void bind_frame(std::byte* frame) noexcept;
void allow() noexcept;
/// `unlock` and `lock` act on `mutex`, and are called while a checkpoint is begun.
void prevent(void* mutex, void (*unlock)(void*) noexcept, void (*lock)(void*) noexcept) noexcept;
/// The calling thread ends. Its lines stay.
void thread_exit() noexcept;
/// In a child made by fork: no thread of the parent's is there.
void reset_after_fork() noexcept;

/// The calling thread stands at its restart point, until end_rest(). False, and nothing is done: it was not between restart points, or
/// it holds a lock.
[[nodiscard]] bool begin_rest() noexcept;
void end_rest() noexcept;

/// The lines of the epochs of one parity, of all threads. Only when no thread appends to them: between the stop that ends the epoch and the
/// next. Two runs of lines of one chunk never overlap.
class CollectedLines {
public:
    explicit CollectedLines(std::uint64_t epoch) noexcept : parity_(epoch & 1) {}
    /// Calls visit(std::span<std::uintptr_t>) for each run of lines.
    template <class Visit>
    void for_each_run(Visit visit) const
    {
        for (Thread* thread = first_thread(); thread != nullptr; thread = thread->next) {
            const LineList& list = thread->lists[parity_];
            for (LineChunk* chunk = list.first; chunk != nullptr; chunk = chunk == list.last ? nullptr : chunk->next) {
                visit(std::span(chunk->lines, chunk->count));
            }
        }
    }
    /// True if lines were lost because there was no memory: all of the image counts as written.
    [[nodiscard]] bool incomplete() const noexcept;
    void clear() noexcept;
    /// Whether a thread has noted a line in that epoch; also while threads do.
    [[nodiscard]] static bool any_in(std::uint64_t epoch) noexcept;
    /// Before an engine starts: no thread has noted anything, whatever an earlier pool of this process had.
    static void forget_all() noexcept;

private:
    [[nodiscard]] static Thread* first_thread() noexcept;

    std::size_t parity_;
};

}  // namespace stillpoint::respct

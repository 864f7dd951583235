#include "engines/respct/thread.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <sys/mman.h>

#include "heap/heap.hpp"
#include "os/futex.hpp"
#include "os/log.hpp"
#include "runtime/fase.hpp"
#include "runtime/fase_gate.hpp"
#include "runtime/thread_registry.hpp"

extern "C" {
__attribute__((visibility("default"))) constinit std::uint64_t sp_respct_running = 1;
}

namespace stillpoint::respct {

[[gnu::tls_model("initial-exec")]] constinit thread_local Thread* own_thread = nullptr;  // GCC forgets the declaration's here.
void set_running_epoch(std::uint64_t epoch) noexcept
{
    const std::uint64_t word = 2 * epoch + 1;
    __atomic_store_n(&sp_respct_running, word, __ATOMIC_RELEASE);
    logged::running_word.store(word, std::memory_order_release);
}

constinit std::atomic<bool> active{false};
constinit std::atomic<std::uint64_t> image_bytes{0};

namespace {

constinit std::atomic<Thread*> threads{nullptr};
constinit os::FutexLock threads_lock{};
constinit std::array<std::atomic<bool>, 2> lost{};  ///< lines, by parity

template <class T>
T* mapped() noexcept
{
    const int saved_errno = errno;
    void* const memory = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    errno = saved_errno;
    return memory == MAP_FAILED ? nullptr : static_cast<T*>(memory);
}

[[gnu::always_inline]] inline Thread& own() noexcept { return own_thread != nullptr ? *own_thread : register_thread(); }

/// Makes room for another line. False: no memory.
bool append_chunk(LineList& list) noexcept
{
    if (list.last != nullptr && list.last->next != nullptr) {
        list.last = list.last->next;
        return true;
    }
    auto* const chunk = mapped<LineChunk>();
    if (chunk == nullptr) {
        return false;
    }
    (list.last != nullptr ? list.last->next : list.first) = chunk;
    list.last = chunk;
    return true;
}

/// Stores a frame's restart point as logged<int> does.
void store_restart_point(std::byte* frame, int id) noexcept
{
    constexpr unsigned kind = SP_RESPCT_LOGGED_4;
    auto& word = *reinterpret_cast<std::uint64_t*>(frame + logged::total_bytes(kind) - sizeof(std::uint64_t));
    auto* const values = reinterpret_cast<std::int32_t*>(frame);
    const std::uint64_t epoch = running() >> 1;
    if (word >> 1 != epoch) {
        note_lines(frame, logged::total_bytes(kind));
        const bool in_epoch_before = (word >> 1) + 1 == epoch;
        values[1 + (epoch & 1)] = values[0];
        std::atomic_thread_fence(std::memory_order_release);
        __atomic_store_n(&word, (epoch << 1) | std::uint64_t{in_epoch_before}, __ATOMIC_RELAXED);
        std::atomic_thread_fence(std::memory_order_release);
    }
    __atomic_store_n(&values[0], id, __ATOMIC_RELAXED);
}

[[noreturn, gnu::cold]] void die_of_held_lock(const ThreadRecord& record, const char* file, unsigned line) noexcept
{
    os::log(os::Severity::error,
            "{}:{}: a restart point inside a critical section: the thread holds {} lock(s); a checkpoint here would make half of "
            "what they guard durable, and a thread that waits for one would keep every checkpoint off. Put the restart point in "
            "front of the lock or after its release [ResPCT, section 3.3.2]",
            file != nullptr ? file : "(unknown file)", line, record.depth.load(std::memory_order_relaxed) - 1 + locks_counted());
    std::abort();
}

}  // namespace

Thread& register_thread() noexcept
{
    const std::lock_guard hold(threads_lock);
    Thread* thread = threads.load(std::memory_order_relaxed);
    while (thread != nullptr && thread->is_used.load(std::memory_order_relaxed)) {
        thread = thread->next;
    }
    if (thread == nullptr) {
        void* const memory = mapped<Thread>();
        if (memory == nullptr) {
            end_for_uncounted_thread("a thread's list of written lines");
        }
        thread = new (memory) Thread{};
        thread->next = threads.load(std::memory_order_relaxed);
        threads.store(thread, std::memory_order_release);
    }
    thread->is_inside = false;
    thread->is_allowed = false;
    thread->has_written = false;
    thread->is_used.store(true, std::memory_order_relaxed);
    own_thread = thread;
    return *thread;
}

void begin_epoch_of(Thread& thread, std::uint64_t epoch) noexcept
{
    if (thread.recent_epoch.load(std::memory_order_relaxed) >> 32 != epoch >> 32) {
        thread.recent.fill(0);  // An epoch's lower half may come again.
    }
    thread.recent_epoch.store(epoch, std::memory_order_relaxed);
}

void append_to_full_list(Thread& thread, std::uintptr_t line, std::uint64_t epoch) noexcept
{
    LineList& list = thread.lists[epoch & 1];
    if (!append_chunk(list)) {
        lost[epoch & 1].store(true, std::memory_order_relaxed);
        return;
    }
    list.last->lines[list.last->count++] = line;
}

void enter_inside(Thread& thread) noexcept
{
    if (thread.is_allowed) {
        thread.is_allowed = false;
        fase_resume();
    } else {
        fase_enter(nullptr);
    }
    thread.is_inside = true;
    choose_way_of_locks(true);
    Heap::let_frees_wait(true);
}

void note_lines(const void* address, std::size_t size_bytes) noexcept
{
    if (size_bytes == 0) {
        return;
    }
    Thread& thread = own();
    thread.has_written = true;
    const std::uint64_t epoch = running() >> 1;
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    const std::uintptr_t last = begin + size_bytes - 1;
    for (std::uintptr_t line = begin & ~std::uintptr_t{cache_line_bytes - 1}; line <= last; line += cache_line_bytes) {
        note_line(thread, line, epoch);
    }
}

void bind_frame(std::byte* frame) noexcept
{
    if (frame == nullptr) {
        own().frame.store(nullptr, std::memory_order_relaxed);
        return;
    }
    if (!stillpoint_is_persistent(frame) || reinterpret_cast<std::uintptr_t>(frame) % logged::total_bytes(SP_RESPCT_LOGGED_4) != 0) {
        os::log(os::Severity::error,
                "sp_respct_bind_frame({}): a frame is a logged variable of 4 bytes in the pool; make it by sp_respct_root",
                static_cast<const void*>(frame));
        std::abort();
    }
    Thread& thread = ensure_inside();
    const std::lock_guard hold(threads_lock);
    for (const Thread* other = threads.load(std::memory_order_relaxed); other != nullptr; other = other->next) {
        if (other != &thread && other->frame.load(std::memory_order_relaxed) == frame) {
            os::log(os::Severity::error,
                    "sp_respct_bind_frame({}): another thread has this frame, and both would store their restart points in it; the "
                    "program ends here. Give each thread a frame of its own, under a name of its own",
                    static_cast<const void*>(frame));
            std::abort();
        }
    }
    thread.frame.store(frame, std::memory_order_relaxed);
}

void restart_point(int id, const char* file, unsigned line) noexcept
{
    Thread& thread = ensure_inside();
    const ThreadRecord* const record = fase::own_record;
    if (record == nullptr) [[unlikely]] {
        return;  // Accounting is off: the pool is being closed.
    }
    if (record->depth.load(std::memory_order_relaxed) != 1 || locks_counted() != 0) [[unlikely]] {
        die_of_held_lock(*record, file, line);
    }
    if (std::byte* const frame = thread.frame.load(std::memory_order_relaxed); frame != nullptr) {
        store_restart_point(frame, id);
    }
    thread.has_written = false;
    fase_note_section();
    if ((fase::gate.bits.load(std::memory_order_relaxed) & fase::gate_shut) != 0) [[unlikely]] {
        Heap::finish_frees();
        fase_leave(nullptr);
        fase_enter(nullptr);  // Held while the gate is shut.
    }
}

void allow() noexcept
{
    Thread& thread = own();
    if (thread.is_allowed) {
        return;
    }
    if (!thread.is_inside) {
        return;
    }
    Heap::let_frees_wait(false);
    thread.is_inside = false;
    thread.is_allowed = true;
    choose_way_of_locks(false);
    fase_note_section();
    fase_pause();
}

void prevent(void* mutex, void (*unlock)(void*) noexcept, void (*lock)(void*) noexcept) noexcept
{
    Thread& thread = own();
    if (!thread.is_allowed) {
        ensure_inside();
        return;
    }
    while (mutex != nullptr && !fase_try_resume()) {
        unlock(mutex);
        fase::wait_while_shut();
        lock(mutex);
    }
    if (mutex == nullptr) {
        fase_resume();
    }
    thread.is_allowed = false;
    thread.is_inside = true;
    choose_way_of_locks(true);
    Heap::let_frees_wait(true);
}

void thread_exit() noexcept
{
    Thread* const thread = own_thread;
    if (thread == nullptr) {
        return;
    }
    if (thread->is_allowed) {
        fase_resume();
        thread->is_inside = true;
    }
    if (thread->is_inside) {
        Heap::let_frees_wait(false);
        fase_note_section();
        fase_leave(nullptr);
    }
    thread->is_inside = false;
    thread->is_allowed = false;
    thread->frame.store(nullptr, std::memory_order_relaxed);
    choose_way_of_locks(false);
    own_thread = nullptr;
    const std::lock_guard hold(threads_lock);
    thread->is_used.store(false, std::memory_order_relaxed);
}

void reset_after_fork() noexcept
{
    threads_lock.reset_after_fork();
    set_active(false);
}

bool begin_rest() noexcept
{
    const Thread* const thread = own_thread;
    const ThreadRecord* const record = fase::own_record;
    if (thread == nullptr || !thread->is_inside || record == nullptr || record->depth.load(std::memory_order_relaxed) != 1 ||
        locks_counted() != 0) {
        return false;
    }
    Heap::let_frees_wait(false);
    fase_note_section();
    fase_leave(nullptr);
    return true;
}

void end_rest() noexcept
{
    fase_enter(nullptr);
    Heap::let_frees_wait(true);
}

Thread* CollectedLines::first_thread() noexcept { return threads.load(std::memory_order_acquire); }

bool CollectedLines::incomplete() const noexcept { return lost[parity_].load(std::memory_order_relaxed); }

void CollectedLines::clear() noexcept
{
    for (Thread* thread = first_thread(); thread != nullptr; thread = thread->next) {
        LineList& list = thread->lists[parity_];
        for (LineChunk* chunk = list.first; chunk != nullptr; chunk = chunk->next) {
            chunk->count = 0;
        }
        list.last = list.first;
    }
    lost[parity_].store(false, std::memory_order_relaxed);
}

bool CollectedLines::any_in(std::uint64_t epoch) noexcept
{
    for (const Thread* thread = first_thread(); thread != nullptr; thread = thread->next) {
        if (thread->recent_epoch.load(std::memory_order_relaxed) == epoch) {
            return true;
        }
    }
    return false;
}

void CollectedLines::forget_all() noexcept
{
    CollectedLines(0).clear();
    CollectedLines(1).clear();
    for (Thread* thread = first_thread(); thread != nullptr; thread = thread->next) {
        thread->recent_epoch.store(0, std::memory_order_relaxed);
        thread->recent.fill(0);  // The next pool may come to the same epoch, with the same addresses.
    }
}

}  // namespace stillpoint::respct

#pragma once
// Worker: one thread of the program, in its own process. Between synchronisation points it works on private pages of the durable image; at
// such a point it merges what it has changed, and hands the same bytes to the supervisor as redo, in one step as far as a crash can tell.
//
// A process has one. Its thread alone uses it; a second thread of the process only waits for requests.

#include <cstdint>

#include "core/result.hpp"
#include "engines/nvthreads/processes/control_area.hpp"
#include "engines/nvthreads/processes/isolated_view.hpp"
#include "runtime/section_ends.hpp"

namespace stillpoint::nvthreads::processes {

struct WorkerSettings {
    ControlArea* control;
    std::byte* image_base;
    std::uint64_t image_bytes_max;
    int image_file;
    bool waits_at_unlock;  ///< acknowledge=unlock
};

class Worker {
public:
    /// This process's.
    [[nodiscard]] static Worker& own() noexcept;

    /// The program's first thread begins. Errors: no_memory; io.
    [[nodiscard]] Result<void> begin(const WorkerSettings& settings);
    /// This process is the copy that a new thread got.
    void become(std::uint32_t index) noexcept;

    [[nodiscard]] ControlArea& control() noexcept { return *control_; }
    [[nodiscard]] ThreadSlot& slot() noexcept { return control_->threads[index_]; }
    [[nodiscard]] std::uint32_t index() const noexcept { return index_; }
    /// The holder in locks: from 1.
    [[nodiscard]] std::uint32_t number() const noexcept { return index_ + 1; }
    [[nodiscard]] HeldLocks& held() noexcept { return slot().held; }

    /// The thread has a lock now, or was woken: what others have merged is to be seen.
    void note_acquire() noexcept
    {
        if (!view_.is_clean()) [[unlikely]] {
            refresh();
        }
    }
    void hand_over(section_ends::Handover handover) noexcept;
    /// The outermost lock is released: returns when the thread may go on.
    void acknowledge() noexcept;
    /// Errors: timed_out; io (nothing becomes durable any more).
    [[nodiscard]] Result<void> wait_durable(std::uint64_t deadline_ns) noexcept;
    void thread_ends() noexcept;
    /// Lets the supervisor call `function(bytes)`.
    void call(void (*function)(void* bytes), void* bytes, std::size_t size) noexcept;

    /// True: the store can be made again.
    [[nodiscard]] bool handle_fault(const void* address) noexcept;
    /// A system call is about to store there.
    void open_pages(const void* address, std::size_t size) noexcept;

private:
    [[nodiscard]] bool is_open() noexcept { return slot().has_handed_over.load(std::memory_order_relaxed) != 0; }
    void refresh() noexcept;
    void note_first_page() noexcept;
    /// Merges what the thread has changed, as a record of that kind; without changes only if `always`.
    void merge(RecordKind kind, bool always) noexcept;
    void publish(RecordKind kind, std::uint64_t bytes) noexcept;
    void report_race(const void* place) noexcept;
    [[noreturn]] void end_for_large_section(const char* what) noexcept;

    ControlArea* control_ = nullptr;
    IsolatedView view_;
    os::ReservedArray<std::byte> record_;
    std::uint32_t index_ = 0;
    bool waits_at_unlock_ = false;
    std::uint64_t merges_seen_ = 0;
    std::uint64_t awaited_ = 0;  ///< position of the ring: what the last section may have seen
    const std::byte* image_base_ = nullptr;
};

}  // namespace stillpoint::nvthreads::processes

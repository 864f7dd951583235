#pragma once
// Supervisor: the process that has the session. Its own threads are those of the engine, and two more: the scribe writes what the ring
// brings into the logs, and makes the calls that threads ask for; the acknowledger tells them what is durable. The first thread waits for
// the processes of the program's threads, and ends with the program.

#include <array>
#include <atomic>
#include <cstdint>
#include <sys/types.h>

#include "core/result.hpp"
#include "engines/nvthreads/fase_logs.hpp"
#include "engines/nvthreads/processes/control_area.hpp"
#include "engines/nvthreads/processes/ring_marks.hpp"
#include "os/service_thread.hpp"
#include "runtime/engine.hpp"

namespace stillpoint::nvthreads::processes {

struct SupervisorParts {
    ControlArea* control;
    FaseLogs* logs;
    std::byte* image_base;
    std::uint64_t image_bytes_max;
    std::uint64_t wait_max_ns;  ///< for a section of another thread that has handed a part over and does not end
    unsigned statistics_number;
};

class Supervisor {
public:
    /// Begins to serve. Errors: no_memory.
    [[nodiscard]] Result<void> start(const SupervisorParts& parts);
    /// Waits for the processes, of which `first` is the program's first thread. Returns when the program has ended.
    [[nodiscard]] ProgramEnd wait_for_program(pid_t first) noexcept;
    /// Everything that is in the ring is in the logs; the program has ended.
    void stop() noexcept;

private:
    struct ThreadFacts {
        bool holds_cut;  ///< its section has handed a part over, and is not over
    };

    static void run_scribe(void* self);
    static void run_acknowledger(void* self);
    void write_ring() noexcept;
    void take_record(const RecordHead& head, const std::byte* payload) noexcept;
    void log_runs(const RecordHead& head, const std::byte* payload) noexcept;
    void answer(std::uint32_t thread) noexcept;
    void tell_of_race(std::uint32_t thread, std::uint64_t offset) noexcept;
    void throttle() noexcept;
    void let_go_of_cut(std::uint32_t thread) noexcept;

    /// True: the program has ended.
    [[nodiscard]] bool reap(pid_t first, int& status) noexcept;
    void bury(std::uint32_t index, int status) noexcept;
    [[nodiscard]] bool ends_program(const ThreadSlot& slot, int& status) const noexcept;
    void finish_merge() noexcept;
    void end_all() noexcept;

    SupervisorParts parts_{};
    os::ServiceThread scribe_;
    os::ServiceThread acknowledger_;
    std::atomic<bool> is_stopping_{false};
    std::array<ThreadFacts, threads_max> facts_{};
    RingMarks marks_;
    std::uint32_t races_told_ = 0;
};

}  // namespace stillpoint::nvthreads::processes

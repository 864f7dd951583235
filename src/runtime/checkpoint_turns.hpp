#pragma once
// The thread that takes a checkpoint each interval: when it wakes, how it backs off, how it ends. What a turn does is the engine's.

#include <atomic>
#include <cstdint>

#include "core/result.hpp"
#include "os/service_thread.hpp"
#include "runtime/epoch_clock.hpp"
#include "runtime/quiescence.hpp"

namespace stillpoint {

enum class CheckpointTurn : std::uint8_t { committed, nothing_to_do, withdrawn, failed };

class CheckpointTurns {
public:
    struct Facts {
        bool last;                 ///< the pool is being closed
        bool even_if_empty;        ///< a thread asked for it
        std::uint64_t begun_ns;
    };
    /// Takes one turn, on the checkpoint thread.
    using Take = CheckpointTurn (*)(void* engine, const Facts& facts) noexcept;

    CheckpointTurns(std::uint64_t interval_ns, Take take, void* engine) noexcept : interval_ns_(interval_ns), take_(take), engine_(engine)
    {
    }
    CheckpointTurns(const CheckpointTurns&) = delete;
    CheckpointTurns& operator=(const CheckpointTurns&) = delete;

    /// The thread has the caller's StatisticsScope.
    [[nodiscard]] Result<void> start();
    /// Takes a last turn and ends the thread. False: it did not commit: no quiescent state was found in time, or the pool is
    /// read-only; the last durable epoch stands.
    [[nodiscard]] bool finish() noexcept;
    void detach_after_fork() noexcept { thread_.forget(); }

    /// A checkpoint as soon as possible. Any thread.
    void request() noexcept;

    /// In a turn that is withdrawn: the next one comes no earlier than this.
    void rest_at_least(std::uint64_t ns) noexcept { rest_ns_ = ns; }

    /// For a wait inside a turn: a futex that request() changes, and whether there is one.
    [[nodiscard]] std::atomic<std::uint32_t>& wakes() noexcept { return wakes_; }
    /// The pool is being closed: a wait inside a turn ends.
    [[nodiscard]] bool is_finishing() const noexcept { return finishing_.load(std::memory_order_acquire); }
    [[nodiscard]] std::atomic<bool>& requested() noexcept { return requested_; }

private:
    static void run(void* self);
    void loop() noexcept;
    void sleep_until(std::uint64_t deadline_ns) noexcept;

    std::uint64_t interval_ns_;
    Take take_;
    void* engine_;
    os::ServiceThread thread_;
    std::atomic<std::uint32_t> wakes_{0};  ///< futex of the sleeping thread
    std::atomic<bool> requested_{false};
    std::atomic<bool> finishing_{false};
    bool finished_clean_ = false;
    std::uint64_t rest_ns_ = 0;
    unsigned statistics_number_ = 0;
};

/// The statistics of an attempt that found no quiescent state.
void note_withdrawn(const StopReport& stop) noexcept;
/// The pool stays at its last durable epoch; the program continues, and a thread that waits for an epoch learns that it will not come.
void give_up_durability(EpochClock& clock, const Failure& failure) noexcept;

}  // namespace stillpoint

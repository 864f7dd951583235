#pragma once
// Checkpointer: ends an epoch each interval and makes it durable [ResPCT Figure 4, checkpoint()].
//
// One turn:  stop, which waits for restart points: next epoch | lines of the finished one, tables, fence, commit record (the program runs).
// With Flush::in_stop, as the paper has it, all of that is done in the stop. An epoch ends only when the one before is durable, so at
// most two are not: the one that is being written and the running one, which is why a logged variable has two backups
// (docs/internals/decisions/respct-two-backups.md).

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "core/result.hpp"
#include "engines/respct/line_writer.hpp"
#include "engines/respct/table_copies.hpp"
#include "os/futex.hpp"
#include "runtime/checkpoint_turns.hpp"
#include "runtime/epoch_clock.hpp"
#include "runtime/section_watch.hpp"

namespace stillpoint::respct {

/// So long, at most, an attempt holds the threads that stand at their restart points.
constexpr std::uint64_t attempt_max_ns = 1'000'000'000;
/// And so many times as long they are free afterwards, at least.
constexpr std::uint64_t free_for_each_held = 4;

/// The length of an attempt after so many that were withdrawn.
[[nodiscard]] constexpr std::uint64_t attempt_length_ns(std::uint64_t first_ns, unsigned withdrawn_in_row) noexcept
{
    constexpr unsigned doublings_max = 16;
    return std::min(first_ns << std::min(withdrawn_in_row, doublings_max), attempt_max_ns);
}

class Checkpointer {
public:
    enum class Flush { in_background, in_stop };
    struct Parts {
        Pool* pool;
        ImageMemory* memory;
        LineWriter* writer;
        TableCopies* tables;
        os::FutexLock* medium_lock;
        EpochClock* clock;
    };
    struct Settings {
        std::uint64_t interval_ns;
        std::uint64_t stop_attempt_ns;
        Flush flush;
    };

    Checkpointer(const Parts& parts, const Settings& settings) noexcept
        : parts_(parts), settings_(settings), turns_(settings.interval_ns, &take_turn, this)
    {
    }

    [[nodiscard]] Result<void> start();
    /// As CheckpointTurns::finish.
    [[nodiscard]] bool finish() noexcept;
    void detach_after_fork() noexcept;
    /// A checkpoint as soon as possible. Any thread.
    void request() noexcept { turns_.request(); }

private:
    static CheckpointTurn take_turn(void* self, const CheckpointTurns::Facts& facts) noexcept;
    [[nodiscard]] CheckpointTurn take_checkpoint(bool last, bool even_if_empty) noexcept;
    /// Runs in the stop.
    static void end_epoch(void* self) noexcept;
    [[nodiscard]] Result<void> make_durable() noexcept;
    [[nodiscard]] bool nothing_is_written() const noexcept;
    void note_long_wait(const StopReport& stop) noexcept;
    void note_commit(std::uint64_t write_ns) const noexcept;

    Parts parts_;
    Settings settings_;
    CheckpointTurns turns_;

    // About the turn in progress.
    bool last_ = false;
    SectionWatch watch_{{"no section was seen (no restart point was passed, no lock of pthread or C11 taken)",
                         "Call sp_respct_restart_point() where a thread's data is whole; stores that are not announced are not kept"}};
    std::uint64_t ended_epoch_ = 0;
    std::uint64_t ended_ns_ = 0;
    std::uint64_t ended_unix_ns_ = 0;
    std::uint64_t lines_ = 0;
    Result<void> outcome_;
    unsigned withdrawn_in_row_ = 0;
    bool told_of_wait_ = false;
};

}  // namespace stillpoint::respct

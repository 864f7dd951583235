#pragma once
// Checkpointer: the thread that captures an epoch each interval and makes it durable.
//
// One turn:  pre-copy (the program runs) | stop: mirror globals, collect, copy, next epoch |
//            write and commit (the program runs).
// An epoch is captured only when the one before is durable: at most one is in flight, memory
// stays bounded, and where the medium is the limit the interval stretches.

#include <atomic>
#include <cstdint>
#include <optional>

#include "core/result.hpp"
#include "engines/pmthreads/capture.hpp"
#include "versions/epoch_writer.hpp"
#include "versions/line_sums.hpp"
#include "engines/pmthreads/pacer.hpp"
#include "runtime/section_watch.hpp"
#include "runtime/tracer_watch.hpp"
#include "runtime/shadow.hpp"
#include "engines/pmthreads/tracker.hpp"
#include "os/futex.hpp"
#include "runtime/checkpoint_turns.hpp"
#include "runtime/copy_team.hpp"
#include "runtime/engine.hpp"
#include "runtime/epoch_clock.hpp"
#include "runtime/mirrored_ranges.hpp"
#include "versions/announced_segments.hpp"

namespace stillpoint::pmthreads {

class Checkpointer {
public:
    struct Parts {
        Pool* pool;
        Shadow* shadow;
        Tracker* tracker;
        versions::VersionTable* table;
        versions::LocationAllocator* locations;
        versions::DeltaLog* log;  ///< nullptr: pools of this format have none
        os::FutexLock* medium_lock;
        EpochClock* clock;
    };
    struct Settings {
        std::uint64_t interval_ns;
        std::uint64_t stop_attempt_ns;
        std::uint64_t staging_pages;
        std::uint64_t image_pages_max;
    };

    Checkpointer(const Parts& parts, const Settings& settings) noexcept;
    Checkpointer(const Checkpointer&) = delete;
    Checkpointer& operator=(const Checkpointer&) = delete;

    [[nodiscard]] Result<void> prepare();
    [[nodiscard]] Result<void> start();
    /// Takes a last checkpoint and ends the thread. False: no quiescent state was found in time,
    /// or the pool is read-only; the last durable epoch stands.
    [[nodiscard]] bool finish() noexcept;
    void detach_after_fork() noexcept;

    /// A checkpoint as soon as possible. Any thread.
    void request() noexcept { turns_.request(); }
    /// Copied into the image in each stop. Before start() only.
    [[nodiscard]] Result<void> mirror(const MirroredRange& range) { return mirrored_.add(range); }
    /// A segment that a thread inside a FASE has appended: known to the table from the next stop on.
    void announce_segment(const Segment& segment) noexcept { announced_.announce(segment); }

private:
    using Turn = CheckpointTurn;

    static Turn take_turn(void* self, const CheckpointTurns::Facts& facts) noexcept;
    [[nodiscard]] Turn take_checkpoint(bool last, bool even_if_empty) noexcept;
    /// Runs in the stop.
    static void between_pieces(void* pacer) noexcept;
    /// versions::AwaitRoom: the checkpoint waits, unless it holds threads or is the last one.
    static bool await_room(void* self, const Failure& refusal) noexcept;
    static void capture_in_stop(void* self) noexcept;
    /// Called before a store of this thread into the image.
    static void prepare_store(void* self, std::byte* address, std::size_t size) noexcept;
    [[nodiscard]] Result<void> pre_copy() noexcept;
    [[nodiscard]] Result<std::uint64_t> copy_ahead() noexcept;
    /// `copied_bytes`: by the last pass. Where the tracker knows lines: without pauses, until the stop has little left to copy.
    [[nodiscard]] Result<void> copy_rest_ahead(std::uint64_t copied_bytes) noexcept;
    void take_due_pages() noexcept;
    [[nodiscard]] Result<void> write_unstaged() noexcept;
    /// The lines of a staged page that changed, if they are to be written in its place; 0: it is as it was. Empty: the page is.
    [[nodiscard]] std::optional<std::uint64_t> lines_in_place_of(std::uint64_t index) noexcept;
    /// Returns whether anything is written: EpochWriter::write_page().
    [[nodiscard]] Result<bool> write_staged(std::uint64_t index) noexcept;
    [[nodiscard]] Result<void> write_epoch(bool clean) noexcept;
    void note_stop(std::uint64_t stop_ns, std::uint64_t quiesce_ns) noexcept;
    void note_commit(std::uint64_t write_ns) noexcept;

    Parts parts_;
    Settings settings_;
    Capture capture_;
    std::optional<versions::LineSums> line_sums_;  ///< where the tracker knows pages, and the pool has a delta log
    CopyTeam team_;
    versions::EpochWriter writer_;
    CheckpointTurns turns_;

    MirroredRanges mirrored_;
    versions::AnnouncedSegments announced_;

    SectionWatch watch_{{"no section was seen (no lock of pthread or C11, no sp_fase_begin)",
                         "Take such a lock for each update, or put sp_fase_begin() and sp_fase_end() around it"}};
    TracerWatch tracers_{"Call a function of the program that stores, or use --tracker uffd"};

    Pacer pacer_{turns_.wakes(), turns_.requested()};

    bool waits_for_room_ = false;  ///< a checkpoint has met a full file system, and none has ended since

    // About the turn in progress.
    bool in_stop_ = false;
    bool last_ = false;
    bool writing_begun_ = false;
    bool pre_copy_pays_ = true;
    unsigned turns_without_pre_copy_ = 0;
    std::uint64_t pre_copied_ = 0;        ///< pages
    std::uint64_t pre_copied_bytes_ = 0;  ///< by Capture's measure
    std::uint64_t captured_epoch_ = 0;
    std::uint64_t captured_ns_ = 0;
    std::uint64_t captured_unix_ns_ = 0;
    Result<void> stop_outcome_;
};

}  // namespace stillpoint::pmthreads

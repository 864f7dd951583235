#pragma once
// The thread that takes a snapshot each interval and makes it durable [Pronto §5.2.2].
//
// One turn:  stop: mirror globals, freeze what was written, next epoch | copy frozen pieces to staging memory and write from there,
//            commit (the program runs).
// A snapshot begins only when the one before is durable: at most one is in flight.

#include <atomic>
#include <cstdint>

#include "core/result.hpp"
#include "engines/pronto/snapshot_hooks.hpp"
#include "engines/pronto/snapshot_pieces.hpp"
#include "os/futex.hpp"
#include "runtime/checkpoint_turns.hpp"
#include "runtime/engine.hpp"
#include "runtime/epoch_clock.hpp"
#include "runtime/mirrored_ranges.hpp"
#include "runtime/section_watch.hpp"
#include "runtime/tracer_watch.hpp"
#include "versions/announced_segments.hpp"
#include "versions/epoch_writer.hpp"

namespace stillpoint::pronto {

class SnapshotThread {
public:
    struct Parts {
        Pool* pool;
        Shadow* shadow;
        SnapshotPieces* pieces;
        SnapshotStaging* staging;
        versions::VersionTable* table;
        versions::LocationAllocator* locations;
        os::FutexLock* medium_lock;
        EpochClock* clock;
        const SnapshotHooks* hooks;
    };
    struct Settings {
        std::uint64_t interval_ns;
        std::uint64_t stop_attempt_ns;
        std::uint64_t image_pages_max;
    };

    SnapshotThread(const Parts& parts, const Settings& settings) noexcept;
    SnapshotThread(const SnapshotThread&) = delete;
    SnapshotThread& operator=(const SnapshotThread&) = delete;

    [[nodiscard]] Result<void> prepare();
    /// The image lies in small pages: they are collapsed where they are written. Before start().
    void expect_small_pages() noexcept { small_pages_ = true; }
    /// For versions::Loader::Source.
    [[nodiscard]] std::uint64_t* content_hashes() noexcept { return writer_.content_hashes(); }
    [[nodiscard]] Result<void> start() { return turns_.start(); }
    /// As CheckpointTurns::finish.
    [[nodiscard]] bool finish() noexcept
    {
        const bool finished = turns_.finish();
        watch_.at_end();
        return finished;
    }
    void detach_after_fork() noexcept { turns_.detach_after_fork(); }

    /// A snapshot as soon as possible. Any thread.
    void request() noexcept { turns_.request(); }
    /// By the newest snapshot, whole pieces. On the thread.
    [[nodiscard]] std::uint64_t pages_copied() const noexcept { return parts_.pieces->frozen_count() * pages_per_piece; }
    /// A snapshot is captured and not durable yet. Any thread.
    [[nodiscard]] bool is_writing() const noexcept { return writing_.load(std::memory_order_acquire); }
    /// Copied into the image in each stop. Before start() only.
    [[nodiscard]] Result<void> mirror(const MirroredRange& range) { return mirrored_.add(range); }
    /// A segment that a thread inside a FASE has appended: known to the table from the next stop on.
    void announce_segment(const Segment& segment) noexcept { announced_.announce(segment); }

private:
    static CheckpointTurn take_turn(void* self, const CheckpointTurns::Facts& facts) noexcept;
    [[nodiscard]] CheckpointTurn take_snapshot(bool last, bool even_if_empty) noexcept;
    [[nodiscard]] bool nothing_is_written() const noexcept;
    void note_idle() noexcept;
    /// Runs in the stop.
    static void freeze_in_stop(void* self) noexcept;
    /// Before a store of this thread into the image.
    static void prepare_store(void* self, std::byte* address, std::size_t size) noexcept;
    [[nodiscard]] Result<void> write_epoch(bool clean) noexcept;
    /// Copies and writes until each frozen piece is written.
    [[nodiscard]] Result<void> write_frozen() noexcept;
    [[nodiscard]] Result<void> write_piece(const SnapshotStaging::Filled& filled) noexcept;
    void note_commit(std::uint64_t write_ns) const noexcept;

    Parts parts_;
    Settings settings_;
    versions::EpochWriter writer_;
    CheckpointTurns turns_;

    MirroredRanges mirrored_;
    SectionWatch watch_{
        {"no operation was begun and no sp_fase_begin() was called, which alone delimit with the engine pronto: locks do not",
         "Make each update an operation of an object, or put sp_fase_begin() and sp_fase_end() around it"}};
    TracerWatch tracers_{"Call a function of the program that stores"};
    bool last_ = false;
    versions::AnnouncedSegments announced_;

    bool small_pages_ = false;

    std::atomic<bool> writing_{false};

    // About the turn in progress.
    std::uint64_t captured_epoch_ = 0;
    std::uint64_t captured_ns_ = 0;
    std::uint64_t captured_unix_ns_ = 0;
    std::uint64_t captured_image_pages_ = 0;
    std::uint64_t pages_written_ = 0;
    Result<void> stop_outcome_;
};

}  // namespace stillpoint::pronto

#pragma once
// ReplayRounds: brings the page copies up to what the logs have, and gives the logs' chunks back [SPHT §3.3].
//
// A round: the records up to the marker, in order | their words onto copies of the pages | an epoch of page versions, whose replay point
// says how far it goes. A crash in a round leaves the epoch before, and the logs that it lacks. So replay writes in no place that
// recovery reads, where the paper's writes into the heap itself and relies on being run again.

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

#include "core/result.hpp"
#include "logs/log_area_layout.hpp"
#include "logs/log_scan.hpp"
#include "logs/log_walk.hpp"
#include "logs/replay_order.hpp"
#include "logs/replayed_logs.hpp"
#include "logs/replayer.hpp"
#include "logs/round_size.hpp"
#include "os/futex.hpp"
#include "os/numa.hpp"
#include "os/reserved_array.hpp"
#include "runtime/checkpoint_turns.hpp"
#include "runtime/epoch_clock.hpp"
#include "runtime/shadow.hpp"
#include "versions/announced_segments.hpp"
#include "versions/epoch_writer.hpp"

namespace stillpoint::logs {

class ReplayRounds {
public:
    struct Parts {
        Pool* pool;
        Shadow* shadow;
        versions::VersionTable* table;
        versions::LocationAllocator* locations;
        os::FutexLock* medium_lock;
        EpochClock* clock;
        ReplayedLogs* logs;
    };
    struct Settings {
        std::uint64_t interval_ns;
        std::uint64_t staging_bytes;
        std::uint64_t image_pages_max;
        unsigned replayers;
    };

    ReplayRounds(const Parts& parts, const Settings& settings) noexcept;
    ReplayRounds(const ReplayRounds&) = delete;
    ReplayRounds& operator=(const ReplayRounds&) = delete;

    /// Errors: no_memory.
    [[nodiscard]] Result<void> prepare();
    /// The replay point in force, as it was read.
    void set_replayed(const ReplayPoint& point) noexcept { point_ = point; }
    /// Applies what the logs have to the image itself: recovery. Nothing of the medium changes. Errors: pool_corrupt, no_memory.
    [[nodiscard]] Result<void> replay_into_image(const LogIndex& index);
    /// Makes what replay_into_image() has applied, and the pages that the library has stored to since, an epoch, after which no log record
    /// of an earlier run counts: those up to `newest`. Before start(). Errors: as EpochWriter's.
    [[nodiscard]] Result<void> make_recovered_durable(Timestamp newest, std::uint64_t live_transactions);
    /// The marker, and the engine's word for whose logs the pool has from now on: of a new pool, durable with its first epoch; or where
    /// another kind of logs takes over, and nothing in them counts any more. Errors: io.
    [[nodiscard]] Result<void> write_marker(Timestamp newest, std::uint64_t whose_logs) noexcept;

    [[nodiscard]] Result<void> start();
    [[nodiscard]] bool finish() noexcept { return turns_.finish(); }
    void stop_replayers() noexcept { replayer_.stop(); }
    void detach_after_fork() noexcept;
    /// A round as soon as possible. Any thread; while one is due already this costs a load.
    void request() noexcept
    {
        if (!is_round_wanted_.load(std::memory_order_acquire) && !is_round_wanted_.exchange(true, std::memory_order_acq_rel)) {
            turns_.request();
        }
    }
    /// ReplayedLogs::before_turn() as soon as possible, and no round for that. Any thread.
    void wake() noexcept { turns_.request(); }
    void announce_segment(const Segment& segment) noexcept { announced_.announce(segment); }
    [[nodiscard]] std::uint64_t transactions_replayed() const noexcept { return point_.transactions; }
    [[nodiscard]] Timestamp replayed() const noexcept { return replayed_.load(std::memory_order_acquire); }

private:
    static CheckpointTurn take_turn(void* self, const CheckpointTurns::Facts& facts) noexcept;
    [[nodiscard]] CheckpointTurn take_round(bool last, bool even_if_empty) noexcept;
    [[nodiscard]] Result<void> seal(bool last) noexcept;
    [[nodiscard]] Result<void> replay_up_to(const GroupRecord& goal, bool clean) noexcept;
    [[nodiscard]] bool follow(Timestamp limit) noexcept;
    [[nodiscard]] bool collect(Timestamp limit) noexcept;
    void put_in_order() noexcept;
    /// Replays the first records of `ordered`, as many as staging memory has pages for. Returns how many.
    [[nodiscard]] Result<std::uint64_t> replay_some(std::span<const RecordRef> ordered) noexcept;
    static std::byte* staged_page(void* self, std::uint64_t image_page);
    [[nodiscard]] Result<void> load_copy(std::uint64_t image_page, std::byte* bytes) noexcept;
    [[nodiscard]] Result<void> write_epoch(std::span<const std::uint32_t> pages, const std::byte* (*bytes_of)(ReplayRounds&, std::uint32_t),
                                           const ReplayPoint& point, bool clean) noexcept;
    [[nodiscard]] Result<void> write_replay_point(const ReplayPoint& point) noexcept;
    void rest() noexcept;
    void give_chunks_back(Timestamp replayed) noexcept;
    void plan_next_round(std::uint64_t written_bytes) noexcept;
    [[nodiscard]] LogBytes log_bytes() const noexcept;

    Parts parts_;
    Settings settings_;
    versions::EpochWriter writer_;
    CheckpointTurns turns_;
    std::atomic<bool> is_round_wanted_{false};
    versions::AnnouncedSegments announced_;
    os::NumaNodes nodes_;
    Replayer replayer_;
    RoundSize round_size_;
    ReplayPoint point_{};
    std::uint64_t newest_epoch_ns_ = 0;  ///< when it was begun
    bool room_is_kept_ = true;  ///< chunks may have room that an idle program does not need
    bool has_replayed_ = false;
    std::atomic<Timestamp> replayed_{0};
    Timestamp newest_replayed_ = 0;  ///< of a record of this run; 0: none

    // The round in progress.
    RecordList walked_;  ///< log after log
    RecordList ordered_;
    os::ReservedArray<LogHead> heads_;
    std::uint32_t head_count_ = 0;
    os::ReservedArray<std::byte> staging_;
    std::atomic<std::uint64_t> staged_pages_{0};
    os::ReservedArray<std::uint32_t> staged_at_;  ///< by image page
    os::ReservedArray<std::uint32_t> sorted_pages_;
    std::atomic<bool> has_failed_{false};
    std::optional<Failure> failure_;  ///< of the first copy that could not be loaded
    os::ReservedArray<std::byte> point_pages_;
};

}  // namespace stillpoint::logs

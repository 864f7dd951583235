#pragma once
// DirectCommit: how records become durable on byte-addressable media where unlocks wait. Each thread makes its own record durable before
// it releases the lock, with one fence: others see nothing that a crash can take away.
//
// A record that is a whole FASE counts as soon as it is whole (stands_alone in logs/redo_layout.hpp), if all that its thread may have seen
// counted already. The others count by the marker: parts of FASEs that hand some over before they end; records of several pieces; and
// every record that is made while one of these is not durable yet, since its thread may have seen that.

#include <atomic>
#include <cstdint>
#include <optional>

#include "engines/nvthreads/open_fases.hpp"
#include "logs/commit_order.hpp"
#include "logs/durable_marker.hpp"
#include "media/medium.hpp"

namespace stillpoint::nvthreads {

/// Threads: any.
class DirectCommit {
public:
    struct Parts {
        Medium* medium;
        std::uint64_t marker_offset;
        logs::CommitOrder* order;
        const logs::CommitClock* clock;
        OpenFases* open_fases;
        bool spares_markers;  ///< false: every record counts by the marker
    };

    /// Before anything is logged in this run.
    void start(const Parts& parts) noexcept;

    /// The newest record that counts by the marker: when that has reached it, everything that was handed over is durable.
    [[nodiscard]] Timestamp newest_marked() const noexcept { return newest_marked_.load(std::memory_order_acquire); }

    /// How the record with that timestamp counts: its flags. Its thread has announced it, and appends it next. `is_part`: its FASE has
    /// others.
    [[nodiscard]] std::uint32_t settle(Timestamp timestamp, std::uint64_t words, bool is_part) noexcept;

    enum class Outcome : std::uint8_t {
        durable,
        open,  ///< a FASE that began before `needed` has not ended
        lost,  ///< the medium has lost something
    };
    /// Moves the marker as far as it may go. durable: that is `needed` at least.
    [[nodiscard]] Outcome raise_marker(Timestamp needed) noexcept;

private:
    Parts parts_{};
    std::optional<logs::DurableMarker> marker_;
    Timestamp first_ = 0;  ///< every record of this run has a later timestamp
    alignas(128) std::atomic<Timestamp> newest_marked_{0};
};

}  // namespace stillpoint::nvthreads

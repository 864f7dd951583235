#pragma once
// LoggedEngine: what the engines of redo logs do alike, on top of ImageEngine: replay at start, an epoch with what was replayed before
// anything new is logged, rounds of replay in the background, chunks of segments that the pool grows by.

#include <optional>

#include "logs/recovered_logs.hpp"
#include "logs/replay_rounds.hpp"
#include "logs/replayed_logs.hpp"
#include "versions/image_engine.hpp"

namespace stillpoint::logs {

class LoggedEngine : public versions::ImageEngine {
protected:
    using ImageEngine::ImageEngine;

    // Parts of start(), in this order, after the engine's logs are prepared.
    /// `logs`, which are the engine's, get the pool's chunks. Errors: no_memory.
    [[nodiscard]] Result<void> prepare_replay(ReplayedLogs& logs, const Options& options, unsigned replayers);
    /// The chunks as they are on the medium, for read_logs(). Errors: io.
    [[nodiscard]] Result<LogBytes> read_log_bytes();
    /// The image gets what the logs have. Errors: pool_corrupt, no_memory.
    [[nodiscard]] Result<void> replay(const RecoveredLogs& recovered);

    /// In start_checkpoints(): makes what the logs had an epoch, after which no record of an earlier run counts, and all chunks are free.
    /// Returns the newest timestamp that an earlier run has given. Errors: as EpochWriter's.
    [[nodiscard]] Result<Timestamp> make_replayed_durable(const RecoveredLogs& recovered, std::uint64_t whose_logs);
    /// The newest group, as the run that begins goes on from it: the pool may have been on another kind of medium, where groups do not
    /// count.
    [[nodiscard]] GroupRecord group_to_go_on_from(const RecoveredLogs& recovered) const noexcept;

    void announce_segment(const Segment& segment) noexcept override;

    std::optional<ReplayRounds> rounds_;  ///< the engine's destructor ends them: they use its logs

private:
    ReplayedLogs* logs_of_engine_ = nullptr;
    bool logs_are_empty_ = true;  ///< nothing of an earlier run lies in them
};

}  // namespace stillpoint::logs

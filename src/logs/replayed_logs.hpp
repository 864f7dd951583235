#pragma once
// ReplayedLogs: what ReplayRounds needs to know of an engine whose logs it replays.

#include <cstdint>
#include <span>

#include "core/result.hpp"
#include "logs/chunk_space.hpp"
#include "logs/commit_links.hpp"
#include "logs/group_commit.hpp"
#include "logs/redo_log.hpp"

namespace stillpoint::logs {

/// Threads: the checkpoint thread calls; the program's threads append to the logs meanwhile.
class ReplayedLogs {
public:
    ReplayedLogs() = default;
    ReplayedLogs(const ReplayedLogs&) = delete;
    ReplayedLogs& operator=(const ReplayedLogs&) = delete;
    virtual ~ReplayedLogs() = default;

    [[nodiscard]] virtual ChunkSpace& space() noexcept = 0;
    /// Two for each thread that commits.
    static constexpr std::uint32_t logs_max = 2 * CommitOrder::slots_max;
    /// The logs in use. More may come meanwhile.
    [[nodiscard]] virtual std::uint32_t log_count() const noexcept = 0;
    [[nodiscard]] virtual RedoLog& log(std::uint32_t number) noexcept = 0;
    /// Up to where records count; also how many those are, where groups count them.
    [[nodiscard]] virtual GroupRecord replayable() noexcept = 0;
    [[nodiscard]] virtual bool groups_count_records() const noexcept = 0;
    /// Makes what has happened so far durable, without a wait for room in the log. False: there is none.
    [[nodiscard]] virtual Result<bool> try_seal() noexcept = 0;
    /// The pages of the image that were stored to before the logs were in use. Some come twice.
    [[nodiscard]] virtual std::span<const std::uint32_t> early_pages() const noexcept = 0;
    virtual void fail_for_good(const Failure& failure) noexcept = 0;

    /// Links between records; nullptr: there are none.
    [[nodiscard]] virtual CommitLinks* links() noexcept { return nullptr; }
    /// A round has found the order of `records` along links; or it had to sort.
    virtual void note_linked(std::uint64_t records) noexcept { static_cast<void>(records); }
    virtual void note_missing_link() noexcept {}
    /// Before each turn. True: what one has asked this turn for is done by it.
    [[nodiscard]] virtual bool before_turn() noexcept { return false; }
};

}  // namespace stillpoint::logs

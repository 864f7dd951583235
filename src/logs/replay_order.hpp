#pragma once
// From the records of several logs to the one order in which they are replayed: by looking at the heads of all logs, as the classical
// systems do, or along the links that threads left when they committed [SPHT §3.2].

#include <span>

#include "logs/link_walk.hpp"
#include "logs/log_scan.hpp"

namespace stillpoint::logs {

/// The part of a log that is not in the order yet.
class LogHead {
public:
    LogHead() = default;
    explicit LogHead(std::span<const RecordRef> records) noexcept : next_(records.data()), end_(records.data() + records.size()) { look(); }

    [[nodiscard]] Timestamp timestamp() const noexcept { return timestamp_; }  ///< ended: the largest
    [[nodiscard]] std::uint64_t left() const noexcept { return static_cast<std::uint64_t>(end_ - next_); }
    RecordRef take() noexcept
    {
        const RecordRef record = *next_++;
        look();
        return record;
    }
    static constexpr Timestamp ended = timestamp_max + 1;

private:
    void look() noexcept { timestamp_ = next_ != end_ ? next_->timestamp : ended; }

    const RecordRef* next_ = nullptr;
    const RecordRef* end_ = nullptr;
    Timestamp timestamp_ = ended;
};

/// Fills `out`, oldest first, from logs that are each in order; of equal timestamps the earlier log's comes first. Returns how many:
/// as many as the logs have, at most as many as `out`. The heads move on. Cost: a look at each log for each record.
std::uint64_t order_by_timestamp(std::span<LogHead> logs, std::span<RecordRef> out) noexcept;

/// Fills all of `out`, oldest first, with the records from `oldest` to `newest` along their links. False: there are more or fewer, or a
/// link is missing or leads to a place without a record whose turn it is. Links are hints, so the caller then uses order_by_timestamp.
/// The end that is arrived at (forward: newest) may have position 0: not known.
[[nodiscard]] bool follow_links(const LogBytes& bytes, LinkDirection direction, const RecordRef& oldest, const RecordRef& newest,
                                std::span<RecordRef> out) noexcept;

/// `ordered` has the records of all logs of the index, each once: for links that were read from a pool. Errors: no_memory.
[[nodiscard]] Result<bool> has_all_of(std::span<const RecordRef> ordered, const LogIndex& index, const LogBytes& bytes);

}  // namespace stillpoint::logs

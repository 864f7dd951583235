#pragma once
// Along the links that threads left when they committed [SPHT §3.2].

#include "logs/log_bytes.hpp"

namespace stillpoint::logs {

inline constexpr std::uint64_t link_mark = 1;  ///< in a link: it is there

enum class LinkDirection {
    forward,  ///< RecordHeader::link is the next record's position
    backward,  ///< the previous one's
};

/// The records from `oldest` to `newest`, so many.
struct LinkedRecords {
    LinkDirection direction;
    RecordRef oldest;  ///< with backward links its position may be 0: not known
    RecordRef newest;  ///< with forward links
    std::uint64_t count;

    [[nodiscard]] const RecordRef& start() const noexcept { return direction == LinkDirection::forward ? oldest : newest; }
    /// `record` is the other end.
    [[nodiscard]] bool ends_with(const RecordRef& record) const noexcept
    {
        const RecordRef& end = direction == LinkDirection::forward ? newest : oldest;
        return end.timestamp == record.timestamp && (end.position == 0 || end.position == record.position);
    }
};

/// Goes along links, one record at a time. A link is followed only to a place that can be the neighbour's: one with a record header, and a
/// timestamp on the right side.
class LinkWalk {
public:
    /// At `start`: the oldest record for forward links, the newest for backward ones.
    LinkWalk(const LogBytes& bytes, LinkDirection direction, const RecordRef& start) noexcept;

    /// The record that was come to; nullptr: `start` is not one, or a link was wrong or missing.
    [[nodiscard]] const RecordHeader* record() const noexcept { return record_; }
    [[nodiscard]] RecordRef ref() const noexcept { return {record_->timestamp >> 1, position_}; }
    void advance() noexcept;

private:
    LogBytes bytes_;
    const RecordHeader* record_ = nullptr;
    Position position_;
    bool is_forward_;
};

}  // namespace stillpoint::logs

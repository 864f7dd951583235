#include "logs/commit_links.hpp"

namespace stillpoint::logs {

namespace {

/// While it exists, readers of the slot's words wait.
class SlotChange {
public:
    explicit SlotChange(CommitOrder::Slot& slot) noexcept : slot_(slot), sequence_(slot.sequence.load(std::memory_order_relaxed))
    {
        slot_.sequence.store(sequence_ + 1, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_release);
    }
    SlotChange(const SlotChange&) = delete;
    SlotChange& operator=(const SlotChange&) = delete;
    ~SlotChange() { slot_.sequence.store(sequence_ + 2, std::memory_order_release); }

private:
    CommitOrder::Slot& slot_;
    std::uint64_t sequence_;
};

}  // namespace

Result<void> CommitLinks::reserve(CommitOrder& order, ChunkSpace& space, Medium& medium, std::optional<LinkDirection> direction,
                                  std::uint64_t chunks_max)
{
    order_ = &order;
    space_ = &space;
    medium_ = &medium;
    direction_ = direction;
    if (!direction) {
        return {};
    }
    return timestamps_.reserve(chunks_max * (chunk_bytes / cache_line_bytes), "the timestamps of log records");
}

CommitLinks::Snapshot CommitLinks::snapshot_of(const CommitOrder::Slot& slot) noexcept
{
    for (unsigned turns = 0;; wait_turn(turns)) {
        const std::uint64_t before = slot.sequence.load(std::memory_order_acquire);
        const Snapshot seen{
            slot.stamp.load(std::memory_order_acquire),
            slot.position.load(std::memory_order_relaxed),
            {slot.previous_timestamp.load(std::memory_order_relaxed), slot.previous_position.load(std::memory_order_relaxed)}};
        std::atomic_thread_fence(std::memory_order_acquire);
        if (before % 2 == 0 && slot.sequence.load(std::memory_order_relaxed) == before) {
            return seen;
        }
    }
}

void CommitLinks::announce(CommitOrder::Slot& slot, LinkSearch& search, Position position, Timestamp now) noexcept
{
    if (!direction_) {
        CommitOrder::announce(slot, now);
        return;
    }
    search.position_ = position;
    if (position != 0) {
        timestamp_at(position).store(0, std::memory_order_relaxed);
    }
    const SlotChange change(slot);
    slot.position.store(position, std::memory_order_relaxed);
    CommitOrder::announce(slot, now);
}

void CommitLinks::note_timestamp(LinkSearch& search, Timestamp timestamp) noexcept
{
    search.timestamp_ = timestamp;
    if (direction_ && search.position_ != 0) {
        timestamp_at(search.position_).store(timestamp, std::memory_order_release);
    }
}

void CommitLinks::scan_others(const CommitOrder::Slot& slot, LinkSearch& search) noexcept
{
    if (!direction_) {
        return;
    }
    search.predecessor_ = snapshot_of(slot).previous;
    search.preceding_count_ = 0;
    const auto consider = [&](Timestamp timestamp, Position position) noexcept {
        if (timestamp < search.timestamp_ && timestamp > search.predecessor_.timestamp) {
            search.predecessor_ = {timestamp, position};
        }
    };
    const std::uint32_t count = order_->slot_count();
    for (std::uint32_t i = 0; i < count; ++i) {
        const CommitOrder::Slot& other = order_->slot(i);
        if (&other == &slot) {
            continue;
        }
        const Snapshot seen = snapshot_of(other);
        if (seen.stamp >> 1 < search.timestamp_) {
            if ((seen.stamp & 1) != 0) {
                consider(seen.stamp >> 1, seen.position);
                continue;
            }
            if (seen.position != 0) {
                search.preceding_[search.preceding_count_++] = seen.position;
            }
        }
        consider(seen.previous.timestamp, seen.previous.position);
    }
}

void CommitLinks::finish(CommitOrder::Slot& slot, LinkSearch& search, bool durable) noexcept
{
    if (!direction_) {
        return;
    }
    RecordRef& predecessor = search.predecessor_;
    for (std::uint32_t i = 0; i < search.preceding_count_; ++i) {
        // 0: it was rolled back. Another one that has the place by now began later than this one, and so did its timestamp.
        const Timestamp timestamp = timestamp_at(search.preceding_[i]).load(std::memory_order_acquire);
        if (timestamp < search.timestamp_ && timestamp > predecessor.timestamp) {
            predecessor = {timestamp, search.preceding_[i]};
        }
    }
    if (durable && predecessor.position != 0) {
        if (*direction_ == LinkDirection::forward) {
            write_link(predecessor.position, search.position_);
        } else {
            write_link(search.position_, predecessor.position);
        }
    }
    const SlotChange change(slot);
    slot.previous_position.store(search.position_, std::memory_order_relaxed);
    slot.previous_timestamp.store(search.timestamp_, std::memory_order_relaxed);
}

void CommitLinks::withdraw(CommitOrder::Slot& slot) noexcept
{
    if (!direction_) {
        CommitOrder::withdraw(slot);
        return;
    }
    CommitOrder::close(slot);
    const SlotChange change(slot);
    slot.position.store(slot.previous_position.load(std::memory_order_relaxed), std::memory_order_relaxed);
    slot.stamp.store(slot.previous_timestamp.load(std::memory_order_relaxed) << 1 | 1, std::memory_order_release);
}

void CommitLinks::write_link(Position record, Position neighbour) noexcept
{
    const auto chunk = static_cast<ChunkIndex>(chunk_of(record));
    const std::uint64_t offset = offset_in_chunk(record) + offsetof(RecordHeader, link);
    if (space_->is_mirrored()) {
        const std::atomic_ref link(*reinterpret_cast<std::uint64_t*>(space_->mirror(chunk) + offset));
        link.store(neighbour | link_mark, std::memory_order_release);
    } else {
        medium_->store_word(space_->file_offset(chunk) + offset, neighbour | link_mark);
    }
}

void CommitLinks::await_links(Timestamp limit) noexcept
{
    if (!direction_) {
        return;
    }
    const std::uint32_t count = order_->slot_count();
    for (std::uint32_t i = 0; i < count; ++i) {
        const CommitOrder::Slot& slot = order_->slot(i);
        const Snapshot first = snapshot_of(slot);
        // Between two commits a thread's stamp is that of its previous transaction.
        const auto commits = [&](const Snapshot& seen) noexcept {
            return seen.previous == first.previous && seen.stamp != (seen.previous.timestamp << 1 | 1) && seen.stamp >> 1 <= limit;
        };
        Snapshot seen = first;
        for (unsigned turns = 0; seen.stamp != 0 && commits(seen); seen = snapshot_of(slot)) {
            wait_turn(turns);
        }
    }
}

}  // namespace stillpoint::logs

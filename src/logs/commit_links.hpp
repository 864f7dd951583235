#pragma once
// CommitLinks: while transactions commit, each finds its predecessor in the order of timestamps, and their records are linked
// [SPHT §3.2, Algorithm 2]. Replay then need not look at the heads of all logs.
//
// What a transaction could find in one word of others (CommitOrder::Slot::stamp) is here four: stamp and record of the running
// transaction, timestamp and record of the one before. The paper reads them with one AVX instruction of 32 bytes, "atomic in recent CPUs".
// No maker of CPUs promises that (only 16 bytes, where there is AVX), so a sequence number tells whether the words belong together.
//
// The paper's link slot holds the own timestamp first and the link later, with bit 0 to tell them apart. Here they are two places: the
// timestamp has a word in DRAM for each line of log space, where a transaction that was rolled back leaves 0 and never old log bytes; the
// link is RecordHeader::link. So also a later look finds a timestamp, as backward links need.

#include <cstdint>
#include <optional>

#include "logs/chunk_space.hpp"
#include "logs/commit_order.hpp"
#include "logs/link_walk.hpp"
#include "media/medium.hpp"

namespace stillpoint::logs {

/// One thread's knowledge of the transaction that it commits, and of those before.
class LinkSearch {
public:
    /// Errors: no_memory.
    [[nodiscard]] Result<void> reserve() { return preceding_.reserve(CommitOrder::slots_max, "the transactions that precede another"); }

private:
    friend class CommitLinks;
    Position position_ = 0;
    Timestamp timestamp_ = 0;
    RecordRef predecessor_{};             ///< the newest of those known to be earlier
    os::ReservedArray<Position> preceding_;  ///< perhaps earlier, without their timestamps yet: the paper's precTXs
    std::uint32_t preceding_count_ = 0;
};

/// Without a direction it only does what CommitOrder does.
///
/// Threads: any, each for its own slot and search.
class CommitLinks {
public:
    CommitLinks() = default;
    CommitLinks(const CommitLinks&) = delete;
    CommitLinks& operator=(const CommitLinks&) = delete;

    /// Before the first transaction, and after the reserve() of both. Errors: no_memory.
    [[nodiscard]] Result<void> reserve(CommitOrder& order, ChunkSpace& space, Medium& medium, std::optional<LinkDirection> direction,
                                       std::uint64_t chunks_max);
    [[nodiscard]] std::optional<LinkDirection> direction() const noexcept { return direction_; }

    // -- The steps of a commit, in this order ----------------------------------------------------------
    /// Lines 3 to 8. `position`: where its record will begin; 0: it will have none.
    void announce(CommitOrder::Slot& slot, LinkSearch& search, Position position, Timestamp now) noexcept;
    /// Lines 12 and 13, without the stamp, which follows: others find the timestamp by the position from here on.
    void note_timestamp(LinkSearch& search, Timestamp timestamp) noexcept;
    /// Lines 27 to 47. Before CommitOrder::persisted(): until then no thread gets past the transaction that follows, so what precedes it is
    /// still one of the two that each thread tells about.
    void scan_others(const CommitOrder::Slot& slot, LinkSearch& search) noexcept;
    /// Lines 51 to 53 and 24 to 26. Everything earlier is persisted. Not `durable`: nothing is linked.
    void finish(CommitOrder::Slot& slot, LinkSearch& search, bool durable) noexcept;
    /// In place of the other steps: the transaction has no record. Its thread tells what it told before; the paper does not say.
    void withdraw(CommitOrder::Slot& slot) noexcept;

    // -- The replayer ------------------------------------------------------------------------------------
    /// Returns when all links between records up to `limit`, which is durable, are written. From then on no thread stores a link, or looks
    /// for a timestamp, in a record older than the newest of those.
    void await_links(Timestamp limit) noexcept;

private:
    /// The words of a slot, as of one moment.
    struct Snapshot {
        std::uint64_t stamp;
        Position position;
        RecordRef previous;
    };
    [[nodiscard]] static Snapshot snapshot_of(const CommitOrder::Slot& slot) noexcept;
    [[nodiscard]] std::atomic<Timestamp>& timestamp_at(Position position) noexcept { return timestamps_[position / cache_line_bytes]; }
    void write_link(Position record, Position neighbour) noexcept;

    CommitOrder* order_ = nullptr;
    ChunkSpace* space_ = nullptr;
    Medium* medium_ = nullptr;
    std::optional<LinkDirection> direction_;
    os::ReservedArray<std::atomic<Timestamp>> timestamps_;  ///< by the line of log space in which a record begins; 0: none
};

}  // namespace stillpoint::logs

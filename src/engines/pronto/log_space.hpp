#pragma once
// LogSpace: the chunks that the objects' logs are made of, and which of them are free.

#include <array>
#include <cstdint>
#include <span>

#include "core/result.hpp"
#include "engines/pronto/semantic_log_layout.hpp"
#include "os/futex.hpp"
#include "os/reserved_array.hpp"
#include "pool/free_chunks.hpp"
#include "pool/pool.hpp"

namespace stillpoint::pronto {

/// State of a chunk that an object's log has. Guarded by the object's log_lock.
struct ChunkState {
    std::uint64_t sequence;    ///< ChunkHeader::sequence
    std::uint32_t used;        ///< bytes, the header's included
    std::uint32_t dirty_low;   ///< block media: bytes of the mirror [dirty_low, dirty_high) are not on the medium
    std::uint32_t dirty_high;
    ChunkIndex next;           ///< in the object's list
    ChunkIndex next_dirty;
    bool header_is_noted;      ///< block media: as dirty, with the first entry; a chunk without entries has no need of one
};

/// Threads: any, unless a function says otherwise.
class LogSpace {
public:
    /// For pools of at most that many image pages, on that medium. Errors: no_memory.
    [[nodiscard]] Result<void> reserve(std::uint64_t image_pages_max, Medium& medium);

    /// Makes the chunks of a segment known, as taken. Before the program's threads know the segment.
    void add_segment(const Segment& segment) noexcept;

    [[nodiscard]] ChunkIndex chunk_count() const noexcept { return free_.chunk_count(); }
    /// Where the chunk lies in the pool's file, in bytes.
    [[nodiscard]] std::uint64_t file_offset(ChunkIndex chunk) const noexcept { return free_.file_offset(chunk); }
    [[nodiscard]] ChunkState& state(ChunkIndex chunk) noexcept { return states_[chunk]; }
    /// Block media: the chunk's bytes in DRAM, as the medium is to have them.
    [[nodiscard]] std::byte* mirror(ChunkIndex chunk) noexcept { return mirrors_.data() + std::uint64_t{chunk} * chunk_bytes; }

    /// no_chunk: none is free, or the disk has no room for it.
    [[nodiscard]] ChunkIndex take() noexcept
    {
        taken_since_capture_.fetch_add(1, std::memory_order_relaxed);
        return free_.take();
    }
    void give_back(ChunkIndex chunk) noexcept { free_.give_back(chunk); }
    /// The disk had no room for the last chunk that was to be taken.
    [[nodiscard]] bool disk_is_full() const noexcept { return free_.disk_is_full(); }
    /// Chunks that the logs have not needed lately give back their room on the disk, and in memory. One thread at a time.
    void give_room_back() noexcept;
    /// Nothing was written for a while.
    void note_idle() noexcept
    {
        free_.forget_use();
        give_room_back();
    }
    /// A list linked by ChunkState::next; its chunks are given back.
    void give_back_list(ChunkIndex first) noexcept;
    /// Puts the list `first` in front of `rest`; returns the whole.
    [[nodiscard]] ChunkIndex join(ChunkIndex first, ChunkIndex rest) noexcept;
    /// ChunkHeader::beginning.
    [[nodiscard]] std::uint64_t next_beginning() noexcept { return beginnings_.fetch_add(1, std::memory_order_relaxed) + 1; }
    [[nodiscard]] std::uint32_t free_chunks() const noexcept { return free_.free_chunks(); }
    /// A snapshot is due: the logs have grown by as much as the last one has copied, so that they are in proportion to what they save,
    /// or they have used half of the chunks, so that the program still has room meanwhile.
    [[nodiscard]] bool is_snapshot_due() const noexcept
    {
        const std::uint32_t taken = taken_since_capture_.load(std::memory_order_relaxed);
        return taken >= snapshot_chunks_.load(std::memory_order_relaxed) ||
               (free_chunks() < chunk_count() / 2 && taken >= chunk_count() / 4);
    }
    /// In a stop, at that time: the chunks that were taken until now are superfluous when the snapshot is durable.
    void note_capture(std::uint64_t now_ns) noexcept;
    /// A snapshot of that many pages is durable since that time.
    void note_snapshot(std::uint64_t pages, std::uint64_t now_ns) noexcept;
    /// Bytes that logs may grow by before a snapshot is due.
    [[nodiscard]] std::uint64_t bytes_between_snapshots() const noexcept
    {
        return snapshot_chunks_.load(std::memory_order_relaxed) * chunk_bytes;
    }

    /// A futex that changes when chunks come back.
    [[nodiscard]] sync::Atomic<std::uint32_t>& returns() noexcept { return returns_; }
    void wake_waiters() noexcept;

    void reset_after_fork() noexcept { free_.reset_after_fork(); }

private:
    /// However little a snapshot copies, logs may grow by so much before it is due: the less, the shorter snapshots take.
    static constexpr std::uint32_t floor_chunks_min = 4;  ///< 1 MiB
    static constexpr std::uint32_t floor_chunks_max = 64;  ///< 16 MiB
    /// Snapshots take a fiftieth of the time, or less.
    static constexpr std::uint64_t time_between_snapshots = 50;

    FreeChunks free_;
    os::ReservedArray<ChunkState> states_;
    os::ReservedArray<std::byte> mirrors_;
    std::atomic<std::uint64_t> beginnings_{0};
    std::atomic<std::uint32_t> taken_since_capture_{0};
    std::atomic<std::uint32_t> snapshot_chunks_{floor_chunks_min};
    // For the snapshot thread alone.
    std::uint32_t floor_chunks_ = floor_chunks_min;
    std::uint64_t captured_ns_ = 0;  ///< 0: no snapshot yet
    std::uint64_t between_captures_ns_ = 0;
    sync::Atomic<std::uint32_t> returns_{0};
};

}  // namespace stillpoint::pronto

#pragma once
// LogSpace: the chunks that the objects' logs are made of, and which of them are free.

#include <array>
#include <cstdint>
#include <span>

#include "core/result.hpp"
#include "engines/pronto/semantic_log_layout.hpp"
#include "os/futex.hpp"
#include "os/reserved_array.hpp"
#include "pool/pool.hpp"

namespace stillpoint::pronto {

/// Number of a chunk, in the order of the segments.
using ChunkIndex = std::uint32_t;
inline constexpr ChunkIndex no_chunk = UINT32_MAX;

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
    /// For pools of at most that many image pages. Errors: no_memory.
    [[nodiscard]] Result<void> reserve(std::uint64_t image_pages_max, bool mirrored);

    /// Makes the chunks of a segment known, as taken. Before the program's threads know the segment.
    void add_segment(const Segment& segment) noexcept;

    [[nodiscard]] ChunkIndex chunk_count() const noexcept { return chunk_count_.load(std::memory_order_acquire); }
    /// Where the chunk lies in the pool's file, in bytes.
    [[nodiscard]] std::uint64_t file_offset(ChunkIndex chunk) const noexcept { return offsets_[chunk]; }
    [[nodiscard]] ChunkState& state(ChunkIndex chunk) noexcept { return states_[chunk]; }
    /// Block media: the chunk's bytes in DRAM, as the medium is to have them.
    [[nodiscard]] std::byte* mirror(ChunkIndex chunk) noexcept { return mirrors_.data() + std::uint64_t{chunk} * chunk_bytes; }

    /// no_chunk: none is free.
    [[nodiscard]] ChunkIndex take() noexcept;
    void give_back(ChunkIndex chunk) noexcept;
    /// A list linked by ChunkState::next; its chunks are given back.
    void give_back_list(ChunkIndex first) noexcept;
    /// Puts the list `first` in front of `rest`; returns the whole.
    [[nodiscard]] ChunkIndex join(ChunkIndex first, ChunkIndex rest) noexcept;
    /// ChunkHeader::beginning.
    [[nodiscard]] std::uint64_t next_beginning() noexcept { return beginnings_.fetch_add(1, std::memory_order_relaxed) + 1; }
    [[nodiscard]] std::uint32_t free_chunks() const noexcept { return free_count_.load(std::memory_order_acquire); }
    /// A snapshot is due while the program still has room: less than half of the chunks is free.
    [[nodiscard]] bool is_getting_full() const noexcept
    {
        return free_count_.load(std::memory_order_relaxed) < chunk_count_.load(std::memory_order_relaxed) / 2;
    }

    /// A futex that changes when chunks come back.
    [[nodiscard]] sync::Atomic<std::uint32_t>& returns() noexcept { return returns_; }
    void wake_waiters() noexcept;

    void reset_after_fork() noexcept { lock_.reset_after_fork(); }

private:
    os::ReservedArray<std::uint64_t> offsets_;
    os::ReservedArray<ChunkState> states_;
    os::ReservedArray<std::byte> mirrors_;
    os::ReservedArray<ChunkIndex> free_;  ///< a stack
    os::FutexLock lock_;
    std::atomic<ChunkIndex> chunk_count_{0};
    std::atomic<std::uint32_t> free_count_{0};
    std::atomic<std::uint64_t> beginnings_{0};
    sync::Atomic<std::uint32_t> returns_{0};
};

}  // namespace stillpoint::pronto

#pragma once
// ChunkSpace: the chunks that redo logs are made of, which of them are free, and where they lie.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>

#include "core/result.hpp"
#include "logs/redo_layout.hpp"
#include "os/futex.hpp"
#include "os/clock.hpp"
#include "os/reserved_array.hpp"
#include "pool/free_chunks.hpp"

namespace stillpoint::logs {

/// State of a chunk that a log has. What is not atomic is guarded by the log's lock.
struct ChunkState {
    std::uint64_t use;                ///< ChunkHeader::use
    std::atomic<std::uint32_t> used;  ///< bytes, the header's included; written by the log's thread
    std::uint32_t written;            ///< block media: bytes before this are on the medium; the group's thread alone
    std::uint32_t records;            ///< how many it has
    std::uint32_t last;               ///< offset of the newest
    std::uint32_t counted;            ///< as `written`: transactions before this are among those of a group
    std::atomic<Timestamp> newest;    ///< of its records
    ChunkIndex next;                  ///< in the log's list, or among those that wait to be used
    bool is_populated;                ///< its memory has been asked for
};

/// Threads: any, unless a function says otherwise.
class ChunkSpace {
public:
    /// For at most that many chunks. `mapping`: the medium's bytes, where it is byte-addressable, at an address that stays; nullptr:
    /// the bytes are kept in DRAM, as the medium is to have them. `has_mirrors`: logs may keep theirs there in any case. `medium`: where
    /// chunks have room; nullptr: all have it. Errors: no_memory.
    [[nodiscard]] Result<void> reserve(std::uint64_t chunks_max, const std::byte* mapping, bool has_mirrors = false,
                                       Medium* medium = nullptr);

    /// `pages` pages of the file from `first_page` on are chunks, taken; `has_room`: all have it on the disk. Before the program's threads
    /// know them.
    void add(std::uint64_t first_page, std::uint64_t pages, bool has_room = true) noexcept;

    [[nodiscard]] ChunkIndex chunk_count() const noexcept { return free_.chunk_count(); }
    /// Where the chunk lies in the pool's file, in bytes.
    [[nodiscard]] std::uint64_t file_offset(ChunkIndex chunk) const noexcept { return free_.file_offset(chunk); }
    [[nodiscard]] ChunkState& state(ChunkIndex chunk) noexcept { return states_[chunk]; }
    /// Every log's bytes are in DRAM: the medium is none that is mapped.
    [[nodiscard]] bool is_mirrored() const noexcept { return is_mirrored_; }
    /// From here on the chunk's bytes are those in DRAM, or those of the medium. Both are memory that is there, so that the stores of
    /// records find no page missing. The thread of the log that begins the chunk.
    void begin(ChunkIndex chunk, bool in_mirror) noexcept;
    /// The chunk's bytes in DRAM.
    [[nodiscard]] std::byte* mirror(ChunkIndex chunk) noexcept { return mirrors_.data() + std::uint64_t{chunk} * chunk_bytes; }
    /// The bytes of every chunk, for reading.
    [[nodiscard]] std::span<const std::byte* const> bytes() const noexcept { return {bytes_.data(), chunk_count()}; }

    /// `count` free chunks, linked by ChunkState::next, or none of them: no_chunk.
    [[nodiscard]] ChunkIndex take(std::uint32_t count) noexcept;
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
    /// Chunks from `first` on, which no log has.
    void give_back_from(ChunkIndex first) noexcept;
    [[nodiscard]] std::uint64_t next_use() noexcept { return uses_.fetch_add(1, std::memory_order_relaxed) + 1; }
    /// Uses from here on are later ones. Before any.
    void set_uses(std::uint64_t uses) noexcept { uses_.store(uses, std::memory_order_relaxed); }
    [[nodiscard]] std::uint32_t free_chunks() const noexcept { return free_.free_chunks(); }
    /// A replay is due while the program still has room: less than half of the chunks is free, or as many more are in use as
    /// replay_after() has asked for.
    [[nodiscard]] bool is_getting_full() const noexcept
    {
        const std::uint32_t half = chunk_count() / 2;
        return free_chunks() < std::max(half, replay_below_.load(std::memory_order_relaxed));
    }
    /// The next replay is due when logs have taken that many bytes more than now. Chunks that are used again soon lie in memory that is
    /// there, and in caches.
    void replay_after(std::uint64_t bytes) noexcept;

    /// A futex that changes when chunks come back, or nothing more will.
    [[nodiscard]] std::atomic<std::uint32_t>& returns() noexcept { return returns_; }
    void wake_waiters() noexcept;

    void reset_after_fork() noexcept { free_.reset_after_fork(); }

private:
    os::ReservedArray<const std::byte*> bytes_;
    os::ReservedArray<std::byte> states_memory_;
    ChunkState* states_ = nullptr;
    os::ReservedArray<std::byte> mirrors_;
    FreeChunks free_;
    const std::byte* mapping_ = nullptr;
    bool is_mirrored_ = false;
    std::atomic<std::uint32_t> replay_below_{0};  ///< so many free chunks; 0: half of all decides
    std::atomic<std::uint64_t> uses_{0};
    std::atomic<std::uint32_t> returns_{0};
};

/// How long a thread waits for chunks that replays give back, where the disk has no room for others. One thread.
class WaitOnFullDisk {
public:
    explicit WaitOnFullDisk(const ChunkSpace& space) noexcept : space_(space) {}

    /// Asked each time that no chunk was there.
    [[nodiscard]] bool is_over() noexcept
    {
        if (!space_.disk_is_full()) {
            ends_ns_ = 0;
            return false;
        }
        const std::uint64_t now_ns = os::monotonic_ns();
        ends_ns_ = ends_ns_ == 0 ? now_ns + wait_ns : ends_ns_;
        return now_ns > ends_ns_;
    }
    /// When is_over() is to be asked again; UINT64_MAX: when a chunk has come back.
    [[nodiscard]] std::uint64_t deadline_ns() const noexcept { return ends_ns_ == 0 ? UINT64_MAX : ends_ns_; }

private:
    static constexpr std::uint64_t wait_ns = 10'000'000'000;

    const ChunkSpace& space_;
    std::uint64_t ends_ns_ = 0;
};

}  // namespace stillpoint::logs

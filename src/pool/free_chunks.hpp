#pragma once
// FreeChunks: which chunks of a pool's logs are free, and which have room on the disk. A new pool takes room for its first chunks alone;
// others get it when they are first taken, and give it back when logs have needed fewer for a while.

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>

#include "core/result.hpp"
#include "core/units.hpp"
#include "media/medium.hpp"
#include "os/futex.hpp"
#include "os/reserved_array.hpp"

namespace stillpoint {

/// Number of a chunk, in the order of the segments.
using ChunkIndex = std::uint32_t;
inline constexpr ChunkIndex no_chunk = UINT32_MAX;

/// Threads: any, unless a function says otherwise.
class FreeChunks {
public:
    /// For at most that many chunks of that size. nullptr: all have room. Errors: no_memory.
    [[nodiscard]] Result<void> reserve(std::uint64_t chunks_max, std::uint64_t chunk_bytes, Medium* medium);

    /// One more chunk, at that place of the file, taken. `has_room`: surely. One thread at a time.
    void add(std::uint64_t file_offset, bool has_room) noexcept;

    [[nodiscard]] ChunkIndex chunk_count() const noexcept { return chunk_count_.load(std::memory_order_acquire); }
    [[nodiscard]] std::uint32_t free_chunks() const noexcept { return free_count_.load(std::memory_order_acquire); }
    /// Where the chunk lies in the pool's file, in bytes.
    [[nodiscard]] std::uint64_t file_offset(ChunkIndex chunk) const noexcept { return offsets_[chunk]; }

    /// no_chunk: none is free, or the disk has no room for it.
    [[nodiscard]] ChunkIndex take() noexcept;
    void give_back(ChunkIndex chunk) noexcept;
    /// The disk had no room for the last one that was to be taken.
    [[nodiscard]] bool disk_is_full() const noexcept { return disk_is_full_.load(std::memory_order_relaxed); }

    /// Free chunks give their room back, those first that were not used for longest, but for as many as were in use at a time since the
    /// last time, or three quarters of those that kept it then, and at least `least`. Not more than chunks_of_a_call. Where it is more than
    /// a little, each between_returns_ns at most: logs come and go in less, and the next ones would take the room again, page by page.
    /// `released` is told of each chunk, while no thread can take it. `now_ns`: os::monotonic_ns(). One thread at a time.
    template <class Released>
    void give_room_back(std::uint32_t least, std::uint64_t now_ns, Released&& released) noexcept
    {
        if (!is_return_due(now_ns)) {
            return;
        }
        std::array<ChunkIndex, chunks_at_a_time> chunks;
        const std::uint32_t kept = chunks_to_keep(least);
        for (std::size_t given_back = 0; given_back < chunks_of_a_call;) {
            const std::span<const ChunkIndex> unused(chunks.data(), take_unused(kept, chunks));
            for (const ChunkIndex chunk : unused) {
                medium_->release({offsets_[chunk], offsets_[chunk] + chunk_bytes_});
                released(chunk);
            }
            put_below(unused);
            if (unused.size() < chunks.size()) {
                return;
            }
            given_back += unused.size();
        }
    }

    /// The next give_room_back comes in time, and keeps room for the chunks that are in use now, and for `least`: nothing needs others for
    /// a while. The thread that gives room back.
    void forget_use() noexcept;

    void reset_after_fork() noexcept { lock_.reset_after_fork(); }

private:
    static constexpr std::size_t chunks_at_a_time = 16;
    static constexpr std::size_t chunks_of_a_call = 1024;
    static constexpr std::uint64_t between_returns_ns = 5'000'000'000;
    static constexpr std::uint64_t returned_at_once_bytes_max = 8 * mib;  ///< so little is soon taken again

    /// Notes that room is given back now, where that is due.
    [[nodiscard]] bool is_return_due(std::uint64_t now_ns) noexcept;
    [[nodiscard]] std::uint32_t chunks_to_keep(std::uint32_t least) noexcept;
    /// Free chunks that have room, from those that were not used for longest on; `kept` chunks have room besides.
    [[nodiscard]] std::size_t take_unused(std::uint32_t kept, std::span<ChunkIndex> chunks) noexcept;
    /// They are free again, without room, and are taken after all others.
    void put_below(std::span<const ChunkIndex> chunks) noexcept;

    Medium* medium_ = nullptr;
    std::uint64_t chunk_bytes_ = 0;
    os::ReservedArray<std::uint64_t> offsets_;
    os::ReservedArray<bool> has_room_;  ///< by chunk
    os::ReservedArray<ChunkIndex> free_;  ///< a stack
    os::FutexLock lock_;
    std::atomic<ChunkIndex> chunk_count_{0};
    std::atomic<std::uint32_t> free_count_{0};
    std::uint32_t with_room_ = 0;  ///< how many have it
    std::uint32_t in_use_at_most_ = 0;  ///< since room was given back
    std::uint32_t kept_ = 0;  ///< how many keep it: as many as were in use at a time, or a quarter less than before
    std::uint64_t returned_ns_ = 0;  ///< when room was given back, for the thread that does; 0: not yet, or use is forgotten
    std::atomic<bool> disk_is_full_{false};
};

}  // namespace stillpoint

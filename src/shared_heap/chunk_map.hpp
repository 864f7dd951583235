#pragma once
// ChunkMap: which chunks of the heap's addresses are in use, and for what. In shared memory.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "shared_heap/robust_lock.hpp"

namespace stillpoint::shared_heap {

inline constexpr std::size_t chunk_bytes = std::size_t{64} << 10;
inline constexpr std::size_t chunks_max = std::size_t{1} << 20;  ///< 64 GiB

class ChunkMap {
public:
    static constexpr std::size_t none = SIZE_MAX;

    /// So many neighbouring chunks, the first at a multiple of `alignment_chunks`; they are zero bytes. none: there is no room.
    [[nodiscard]] std::size_t take(std::size_t count, std::size_t alignment_chunks) noexcept;
    /// One chunk for blocks of that class.
    [[nodiscard]] std::size_t take_for_class(std::uint32_t size_class) noexcept;
    /// The large block that begins there.
    void give_back(std::size_t first, std::byte* base) noexcept;
    /// The class of the blocks in that chunk; none: it is of a large block.
    [[nodiscard]] std::size_t class_of(std::size_t chunk) const noexcept
    {
        const std::uint32_t word = words_[chunk].load(std::memory_order_relaxed);
        return word >= class_base ? word - class_base : none;
    }
    /// Chunks of the large block that begins there.
    [[nodiscard]] std::size_t count_of(std::size_t first) const noexcept { return words_[first].load(std::memory_order_relaxed) >> 1; }

private:
    // A word: 0 free; class_base + class; else twice the count of a large block's chunks; 1 in its later chunks.
    static constexpr std::uint32_t later = 1;
    static constexpr std::uint32_t class_base = 1u << 30;

    [[nodiscard]] bool is_free(std::size_t chunk) const noexcept { return words_[chunk].load(std::memory_order_relaxed) == 0; }
    [[nodiscard]] std::size_t find_free(std::size_t count, std::size_t alignment_chunks) const noexcept;

    RobustLock lock_;
    std::size_t top_;         ///< no chunk from here on was ever used
    std::size_t free_count_;  ///< below it, about
    std::atomic<std::uint32_t> words_[chunks_max];
};

}  // namespace stillpoint::shared_heap

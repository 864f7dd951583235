#pragma once
// Chunks of memory that are written all over in every epoch. Arming their pages costs a fault for
// each page and epoch and tells nothing: they are left unarmed for a while, taken as written, and
// compared with what was written out last.

#include <atomic>
#include <cstdint>

#include "core/result.hpp"
#include "core/units.hpp"
#include "os/reserved_array.hpp"

namespace stillpoint::pmthreads {

/// Threads: the checkpoint thread; note_written() by several at once, for different chunks.
class HotChunks {
public:
    static constexpr std::uint64_t chunk_pages = 64;
    static constexpr std::uint64_t chunk_bytes = chunk_pages * page_bytes;

    [[nodiscard]] Result<void> reserve(std::uint64_t image_bytes_max);

    [[nodiscard]] bool is_hot(std::uint64_t chunk) const noexcept { return chunks_[chunk].epochs_left != 0; }
    /// Hot until the epoch before: its pages are unarmed still, and will be found whether they were
    /// written or not.
    [[nodiscard]] bool is_settling(std::uint64_t chunk) const noexcept { return chunks_[chunk].settling; }
    /// Some chunk is hot or settling.
    [[nodiscard]] bool any() const noexcept { return unarmed_count_ != 0; }

    /// The image has `bytes` bytes now.
    void cover(std::uint64_t bytes) noexcept { chunks_end_.store((bytes + chunk_bytes - 1) / chunk_bytes, std::memory_order_release); }
    /// Pages [first, first + count) of the image were found written.
    void note_written(std::uint64_t first_page, std::uint64_t count) noexcept;
    /// The page was taken as written, and was not.
    void note_unchanged(std::uint64_t page) noexcept { ++chunks_[page / chunk_pages].unchanged; }
    /// Decides, from what was noted since the last call, which chunks are hot in the next epoch. A chunk
    /// that stops being hot is armed by the next look at it, which finds all its pages once more.
    void end_epoch() noexcept;

private:
    struct Chunk {
        std::uint8_t written;      ///< pages found in this epoch, saturating
        std::uint8_t full_epochs;  ///< in a row, nearly all pages were found
        std::uint8_t epochs_left;  ///< hot for so many more epochs
        std::uint8_t unchanged;    ///< pages of this epoch that turned out as before
        bool settling;
    };
    static constexpr std::uint8_t nearly_all_pages = 56;
    static constexpr std::uint8_t full_epochs_to_be_hot = 1;
    static constexpr std::uint8_t hot_epochs = 64;
    static constexpr std::uint8_t many_unchanged = 16;

    os::ReservedArray<Chunk> chunks_;
    std::atomic<std::uint64_t> chunks_end_{0};
    std::uint64_t unarmed_count_ = 0;  ///< hot and settling chunks
};

}  // namespace stillpoint::pmthreads

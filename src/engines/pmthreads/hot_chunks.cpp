#include "engines/pmthreads/hot_chunks.hpp"

#include <algorithm>

namespace stillpoint::pmthreads {

Result<void> HotChunks::reserve(std::uint64_t image_bytes_max)
{
    return chunks_.reserve(image_bytes_max / chunk_bytes + 1, "the map of hot memory");
}

void HotChunks::note_written(std::uint64_t first_page, std::uint64_t count) noexcept
{
    const std::uint64_t end_page = first_page + count;
    for (std::uint64_t page = first_page; page < end_page;) {
        const std::uint64_t chunk = page / chunk_pages;
        const std::uint64_t stop = std::min(end_page, (chunk + 1) * chunk_pages);
        chunks_[chunk].written = static_cast<std::uint8_t>(
            std::min<std::uint64_t>(UINT8_MAX, chunks_[chunk].written + (stop - page)));
        chunks_end_ = std::max(chunks_end_, chunk + 1);
        page = stop;
    }
}

void HotChunks::end_epoch() noexcept
{
    for (std::uint64_t i = 0; i < chunks_end_; ++i) {
        Chunk& chunk = chunks_[i];
        if (chunk.epochs_left != 0) {
            --chunk.epochs_left;
            if (chunk.epochs_left == 0) {
                --hot_count_;
                // One more full epoch, this time counted by faults, and it is hot again.
                chunk.full_epochs = full_epochs_to_be_hot - 2;
            }
        } else if (chunk.written >= nearly_all_pages) {
            if (++chunk.full_epochs == full_epochs_to_be_hot) {
                chunk.epochs_left = hot_epochs;
                ++hot_count_;
            }
        } else {
            chunk.full_epochs = 0;
        }
        chunk.written = 0;
    }
}

}  // namespace stillpoint::pmthreads

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
        chunks_[chunk].written = static_cast<std::uint8_t>(std::min<std::uint64_t>(UINT8_MAX, chunks_[chunk].written + (stop - page)));
        page = stop;
    }
}

void HotChunks::end_epoch() noexcept
{
    const std::uint64_t chunks_end = chunks_end_.load(std::memory_order_acquire);
    for (std::uint64_t i = 0; i < chunks_end; ++i) {
        Chunk& chunk = chunks_[i];
        if (chunk.settling) {
            chunk.settling = false;
            --unarmed_count_;
        }
        if (chunk.epochs_left != 0) {
            chunk.epochs_left = chunk.unchanged >= many_unchanged ? std::uint8_t{0} : static_cast<std::uint8_t>(chunk.epochs_left - 1);
            chunk.settling = chunk.epochs_left == 0;
            chunk.full_epochs = 0;
        } else if (chunk.written >= nearly_all_pages && chunk.unchanged == 0) {
            if (++chunk.full_epochs == full_epochs_to_be_hot) {
                chunk.epochs_left = hot_epochs;
                ++unarmed_count_;
            }
        } else {
            chunk.full_epochs = 0;
        }
        chunk.unchanged = 0;
        chunk.written = 0;
    }
}

}  // namespace stillpoint::pmthreads

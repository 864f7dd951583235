#include "engines/pronto/log_space.hpp"

#include <mutex>

#include "engines/pronto/log_layout.hpp"

namespace stillpoint::pronto {

Result<void> LogSpace::reserve(std::uint64_t image_pages_max, bool mirrored)
{
    // Each segment rounds its part up by itself.
    const std::uint64_t chunks = log_pages_for(image_pages_max) / log_chunk_pages +
                                 Pool::segments_max * (log_pages_for(1) / log_chunk_pages + 1);
    if (auto done = offsets_.reserve(chunks, "the chunks of the log"); !done) {
        return done;
    }
    if (auto done = states_.reserve(chunks, "the chunks of the log"); !done) {
        return done;
    }
    if (auto done = mirrored ? mirrors_.reserve(chunks * chunk_bytes, "the log") : Result<void>{}; !done) {
        return done;
    }
    return free_.reserve(chunks, "the chunks of the log");
}

void LogSpace::add_segment(const Segment& segment) noexcept
{
    const std::lock_guard guard(lock_);
    const std::uint64_t pages = log_pages_for(segment.image_pages);
    const std::uint64_t first_page = first_log_page(segment);
    ChunkIndex count = chunk_count_.load(std::memory_order_relaxed);
    for (std::uint64_t page = 0; page < pages; page += log_chunk_pages) {
        offsets_[count++] = (first_page + page) * page_bytes;
    }
    chunk_count_.store(count, std::memory_order_release);
}

ChunkIndex LogSpace::take() noexcept
{
    const std::lock_guard guard(lock_);
    const std::uint32_t count = free_count_.load(std::memory_order_relaxed);
    if (count == 0) {
        return no_chunk;
    }
    free_count_.store(count - 1, std::memory_order_release);
    return free_[count - 1];
}

void LogSpace::give_back(ChunkIndex chunk) noexcept
{
    const std::lock_guard guard(lock_);
    const std::uint32_t count = free_count_.load(std::memory_order_relaxed);
    free_[count] = chunk;
    free_count_.store(count + 1, std::memory_order_release);
}

void LogSpace::give_back_list(ChunkIndex first) noexcept
{
    while (first != no_chunk) {
        const ChunkIndex next = states_[first].next;
        give_back(first);
        first = next;
    }
}

ChunkIndex LogSpace::join(ChunkIndex first, ChunkIndex rest) noexcept
{
    if (first == no_chunk) {
        return rest;
    }
    ChunkIndex last = first;
    while (states_[last].next != no_chunk) {
        last = states_[last].next;
    }
    states_[last].next = rest;
    return first;
}

void LogSpace::wake_waiters() noexcept
{
    returns_.fetch_add(1, std::memory_order_acq_rel);
    os::futex_wake(returns_);
}

}  // namespace stillpoint::pronto

#include "logs/chunk_space.hpp"

#include <mutex>

#include "os/own_mappings.hpp"

namespace stillpoint::logs {

Result<void> ChunkSpace::reserve(std::uint64_t chunks_max, const std::byte* mapping, bool has_mirrors)
{
    constexpr const char* purpose = "the chunks of the log";
    mapping_ = mapping;
    is_mirrored_ = mapping == nullptr;
    if (auto done = offsets_.reserve(chunks_max, purpose); !done) {
        return done;
    }
    if (auto done = bytes_.reserve(chunks_max, purpose); !done) {
        return done;
    }
    if (auto done = states_memory_.reserve(chunks_max * sizeof(ChunkState), purpose); !done) {
        return done;
    }
    // Zero bytes are a chunk's state before its first use.
    states_ = reinterpret_cast<ChunkState*>(states_memory_.data());
    if (auto done = is_mirrored_ || has_mirrors ? mirrors_.reserve(chunks_max * chunk_bytes, "the log") : Result<void>{}; !done) {
        return done;
    }
    return free_.reserve(chunks_max, purpose);
}

void ChunkSpace::add(std::uint64_t first_page, std::uint64_t pages) noexcept
{
    const std::lock_guard guard(lock_);
    ChunkIndex count = chunk_count_.load(std::memory_order_relaxed);
    for (std::uint64_t page = 0; page < pages; page += chunk_pages) {
        offsets_[count] = (first_page + page) * page_bytes;
        bytes_[count] = is_mirrored_ ? mirror(count) : mapping_ + offsets_[count];
        ++count;
    }
    chunk_count_.store(count, std::memory_order_release);
}

void ChunkSpace::begin(ChunkIndex chunk, bool in_mirror) noexcept
{
    bytes_[chunk] = in_mirror ? mirror(chunk) : mapping_ + offsets_[chunk];
    if (!states_[chunk].is_populated) {
        os::populate_own(const_cast<std::byte*>(bytes_[chunk]), chunk_bytes);
        states_[chunk].is_populated = true;
    }
}

ChunkIndex ChunkSpace::take(std::uint32_t count) noexcept
{
    const std::lock_guard guard(lock_);
    std::uint32_t left = free_count_.load(std::memory_order_relaxed);
    if (left < count) {
        return no_chunk;
    }
    ChunkIndex first = no_chunk;
    for (; count != 0; --count) {
        const ChunkIndex chunk = free_[--left];
        states_[chunk].next = first;
        first = chunk;
    }
    free_count_.store(left, std::memory_order_release);
    return first;
}

void ChunkSpace::give_back(ChunkIndex chunk) noexcept
{
    const std::lock_guard guard(lock_);
    const std::uint32_t count = free_count_.load(std::memory_order_relaxed);
    free_[count] = chunk;
    free_count_.store(count + 1, std::memory_order_release);
}

void ChunkSpace::give_back_from(ChunkIndex first) noexcept
{
    for (ChunkIndex chunk = chunk_count(); chunk > first; --chunk) {
        give_back(chunk - 1);
    }
}

void ChunkSpace::replay_after(std::uint64_t bytes) noexcept
{
    const std::uint32_t free = free_chunks();
    const std::uint64_t chunks = bytes / chunk_bytes;
    replay_below_.store(chunks < free ? free - static_cast<std::uint32_t>(chunks) : 0, std::memory_order_relaxed);
}

void ChunkSpace::wake_waiters() noexcept
{
    returns_.fetch_add(1, std::memory_order_acq_rel);
    os::futex_wake(returns_);
}

}  // namespace stillpoint::logs

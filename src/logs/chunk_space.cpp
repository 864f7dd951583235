#include "logs/chunk_space.hpp"

#include <sys/mman.h>

#include "logs/log_area_layout.hpp"
#include "os/own_mappings.hpp"

namespace stillpoint::logs {

Result<void> ChunkSpace::reserve(std::uint64_t chunks_max, const std::byte* mapping, bool has_mirrors, Medium* medium)
{
    constexpr const char* purpose = "the chunks of the log";
    mapping_ = mapping;
    is_mirrored_ = mapping == nullptr;
    if (auto done = free_.reserve(chunks_max, chunk_bytes, medium); !done) {
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
    return is_mirrored_ || has_mirrors ? mirrors_.reserve(chunks_max * chunk_bytes, "the log") : Result<void>{};
}

void ChunkSpace::add(std::uint64_t first_page, std::uint64_t pages, bool has_room) noexcept
{
    for (std::uint64_t page = 0; page < pages; page += chunk_pages) {
        const ChunkIndex chunk = chunk_count();
        const std::uint64_t offset = (first_page + page) * page_bytes;
        bytes_[chunk] = is_mirrored_ ? mirror(chunk) : mapping_ + offset;
        free_.add(offset, has_room);
    }
}

void ChunkSpace::begin(ChunkIndex chunk, bool in_mirror) noexcept
{
    bytes_[chunk] = in_mirror ? mirror(chunk) : mapping_ + file_offset(chunk);
    if (!states_[chunk].is_populated) {
        os::populate_own(const_cast<std::byte*>(bytes_[chunk]), chunk_bytes);
        states_[chunk].is_populated = true;
    }
}

ChunkIndex ChunkSpace::take(std::uint32_t count) noexcept
{
    ChunkIndex first = no_chunk;
    for (; count != 0; --count) {
        const ChunkIndex chunk = free_.take();
        if (chunk == no_chunk) {
            while (first != no_chunk) {
                const ChunkIndex next = states_[first].next;
                give_back(first);
                first = next;
            }
            return no_chunk;
        }
        states_[chunk].next = first;
        first = chunk;
    }
    return first;
}

void ChunkSpace::give_room_back() noexcept
{
    free_.give_room_back(LogPart::chunks_min, os::monotonic_ns(), [this](ChunkIndex chunk) {
        states_[chunk].is_populated = false;
        if (mirrors_.capacity() != 0) {
            os::advise_own(mirror(chunk), chunk_bytes, MADV_DONTNEED);
        }
    });
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

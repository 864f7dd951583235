#include "pool/free_chunks.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

namespace stillpoint {

Result<void> FreeChunks::reserve(std::uint64_t chunks_max, std::uint64_t chunk_bytes, Medium* medium)
{
    constexpr const char* purpose = "the chunks of the log";
    medium_ = medium;
    chunk_bytes_ = chunk_bytes;
    if (auto done = offsets_.reserve(chunks_max, purpose); !done) {
        return done;
    }
    if (auto done = has_room_.reserve(chunks_max, purpose); !done) {
        return done;
    }
    return free_.reserve(chunks_max, purpose);
}

void FreeChunks::add(std::uint64_t file_offset, bool has_room) noexcept
{
    const std::lock_guard guard(lock_);
    const ChunkIndex chunk = chunk_count_.load(std::memory_order_relaxed);
    offsets_[chunk] = file_offset;
    has_room_[chunk] = has_room || medium_ == nullptr;
    with_room_ += has_room_[chunk] ? 1U : 0U;
    chunk_count_.store(chunk + 1, std::memory_order_release);
}

ChunkIndex FreeChunks::take() noexcept
{
    const std::lock_guard guard(lock_);
    const std::uint32_t count = free_count_.load(std::memory_order_relaxed);
    if (count == 0) {
        return no_chunk;
    }
    const ChunkIndex chunk = free_[count - 1];
    if (!has_room_[chunk]) {
        const bool is_full = !medium_->allocate({offsets_[chunk], offsets_[chunk] + chunk_bytes_});
        disk_is_full_.store(is_full, std::memory_order_relaxed);
        if (is_full) {
            return no_chunk;
        }
        has_room_[chunk] = true;
        ++with_room_;
    }
    free_count_.store(count - 1, std::memory_order_release);
    in_use_at_most_ = std::max(in_use_at_most_, chunk_count_.load(std::memory_order_relaxed) - (count - 1));
    return chunk;
}

void FreeChunks::give_back(ChunkIndex chunk) noexcept
{
    const std::lock_guard guard(lock_);
    const std::uint32_t count = free_count_.load(std::memory_order_relaxed);
    free_[count] = chunk;
    free_count_.store(count + 1, std::memory_order_release);
}

void FreeChunks::forget_use() noexcept
{
    const std::lock_guard guard(lock_);
    kept_ = in_use_at_most_ = 0;
    returned_ns_ = 0;
}

bool FreeChunks::is_return_due(std::uint64_t now_ns) noexcept
{
    const std::lock_guard guard(lock_);
    if (with_room_ * chunk_bytes_ > returned_at_once_bytes_max && returned_ns_ != 0 && now_ns - returned_ns_ < between_returns_ns) {
        return false;
    }
    returned_ns_ = now_ns;
    return true;
}

std::uint32_t FreeChunks::chunks_to_keep(std::uint32_t least) noexcept
{
    const std::lock_guard guard(lock_);
    const std::uint32_t in_use = chunk_count_.load(std::memory_order_relaxed) - free_count_.load(std::memory_order_relaxed);
    // A quiet interval between busy ones takes no room away: that would be taken again at once, page by page.
    kept_ = std::max(std::exchange(in_use_at_most_, in_use), kept_ - (kept_ + 3) / 4);
    return std::max(least, kept_);
}

std::size_t FreeChunks::take_unused(std::uint32_t kept, std::span<ChunkIndex> chunks) noexcept
{
    if (medium_ == nullptr) {
        return 0;
    }
    const std::lock_guard guard(lock_);
    const std::uint32_t count = free_count_.load(std::memory_order_relaxed);
    const std::size_t wanted = std::min<std::size_t>(with_room_ - std::min(with_room_, kept), chunks.size());
    std::size_t taken = 0;
    std::uint32_t left = 0;
    for (std::uint32_t i = 0; i < count && wanted != 0; ++i) {
        if (taken < wanted && has_room_[free_[i]]) {
            chunks[taken++] = free_[i];
        } else {
            free_[left++] = free_[i];
        }
    }
    free_count_.store(count - static_cast<std::uint32_t>(taken), std::memory_order_release);
    with_room_ -= static_cast<std::uint32_t>(taken);
    return taken;
}

void FreeChunks::put_below(std::span<const ChunkIndex> chunks) noexcept
{
    const std::lock_guard guard(lock_);
    const std::uint32_t count = free_count_.load(std::memory_order_relaxed);
    std::copy_backward(&free_[0], &free_[0] + count, &free_[0] + count + chunks.size());
    std::copy(chunks.begin(), chunks.end(), &free_[0]);
    for (const ChunkIndex chunk : chunks) {
        has_room_[chunk] = false;
    }
    free_count_.store(count + static_cast<std::uint32_t>(chunks.size()), std::memory_order_release);
}

}  // namespace stillpoint

#include "engines/pronto/log_space.hpp"

#include <algorithm>

#include "engines/pronto/log_layout.hpp"
#include "os/clock.hpp"
#include "os/own_mappings.hpp"

namespace stillpoint::pronto {

Result<void> LogSpace::reserve(std::uint64_t image_pages_max, Medium& medium)
{
    const std::uint64_t chunks = LogPart::chunks_max(image_pages_max);
    if (auto done = free_.reserve(chunks, chunk_bytes, &medium); !done) {
        return done;
    }
    if (auto done = states_.reserve(chunks, "the chunks of the log"); !done) {
        return done;
    }
    return medium.byte_addressable() ? Result<void>{} : mirrors_.reserve(chunks * chunk_bytes, "the log");
}

void LogSpace::add_segment(const Segment& segment) noexcept
{
    const std::uint64_t first_page = LogPart::first_page(segment);
    for (std::uint64_t page = 0; page < LogPart::pages_of(segment); page += log_chunk_pages) {
        free_.add((first_page + page) * page_bytes, segment.first_image_page != 0);
    }
}

void LogSpace::give_room_back() noexcept
{
    free_.give_room_back(LogPart::chunks_min, os::monotonic_ns(), [this](ChunkIndex chunk) {
        if (mirrors_.capacity() != 0) {
            os::advise_own(mirror(chunk), chunk_bytes, MADV_DONTNEED);
        }
    });
}

void LogSpace::note_capture(std::uint64_t now_ns) noexcept
{
    taken_since_capture_.store(0, std::memory_order_relaxed);
    between_captures_ns_ = captured_ns_ == 0 ? UINT64_MAX : now_ns - captured_ns_;
    captured_ns_ = now_ns;
}

void LogSpace::note_snapshot(std::uint64_t pages, std::uint64_t now_ns) noexcept
{
    const std::uint64_t worth_ns = time_between_snapshots * (now_ns - captured_ns_);
    if (between_captures_ns_ < worth_ns) {
        floor_chunks_ = std::min(floor_chunks_ * 2, floor_chunks_max);
    } else if (between_captures_ns_ / 4 > worth_ns) {
        floor_chunks_ = std::max(floor_chunks_ / 2, floor_chunks_min);
    }
    snapshot_chunks_.store(static_cast<std::uint32_t>(std::max<std::uint64_t>(floor_chunks_, pages / log_chunk_pages)),
                           std::memory_order_relaxed);
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

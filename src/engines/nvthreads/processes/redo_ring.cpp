#include "engines/nvthreads/processes/redo_ring.hpp"

namespace stillpoint::nvthreads::processes {

bool RedoRing::wait_for_room(std::uint64_t begin, std::uint64_t end, const SharedWord& give_up) noexcept
{
    constexpr std::uint64_t look_again_ns = 100'000'000;
    while (!has_room(begin, end)) {
        if (give_up.load(std::memory_order_acquire) != 0) {
            return false;
        }
        room_waiters_.fetch_add(1, std::memory_order_seq_cst);
        const std::uint32_t seen = room_.load(std::memory_order_seq_cst);
        if (!has_room(begin, end)) {
            hurry();
            shared_wait(room_, seen, look_again_ns);
        }
        room_waiters_.fetch_sub(1, std::memory_order_seq_cst);
    }
    return true;
}

bool RedoRing::add(std::uint32_t thread, RecordKind kind, const std::byte* payload, std::uint64_t bytes, const SharedWord& give_up) noexcept
{
    const std::uint64_t whole = sizeof(RecordHead) + padded(bytes);
    std::uint64_t begin = tail_.load(std::memory_order_relaxed);
    const std::uint64_t to_end = bytes_max - begin % bytes_max;
    const std::uint64_t skipped = whole > to_end ? to_end : 0;
    if (!wait_for_room(begin, begin + skipped + whole, give_up)) {
        return false;
    }
    if (skipped != 0) {
        const RecordHead padding{thread, RecordKind::padding, skipped};
        std::memcpy(bytes_ + begin % bytes_max, &padding, sizeof padding);
        begin += skipped;
    }
    const RecordHead head{thread, kind, whole};
    std::byte* const at = bytes_ + begin % bytes_max;
    std::memcpy(at, &head, sizeof head);
    if (bytes != 0) {
        std::memcpy(at + sizeof head, payload, bytes);
    }
    tail_.store(begin + whole, std::memory_order_release);
    // The scribe comes by itself once in a while; half of what may wait is more than it may let pile up.
    if (begin + whole - head_.load(std::memory_order_relaxed) > (limit_bytes_ == 0 ? bytes_max : limit_bytes_) / 2) {
        hurry();
    }
    return true;
}

}  // namespace stillpoint::nvthreads::processes

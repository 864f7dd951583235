#include "engines/pronto/snapshot_staging.hpp"

#include <algorithm>
#include <sys/mman.h>
#include <utility>

namespace stillpoint::pronto {

namespace {

void raise_to(std::atomic<std::uint64_t>& figure, std::uint64_t value) noexcept
{
    std::uint64_t seen = figure.load(std::memory_order_relaxed);
    while (seen < value && !figure.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
    }
}

}  // namespace

Result<void> SnapshotStaging::reserve(std::uint64_t bytes_max)
{
    count_ = static_cast<std::uint32_t>(std::max<std::uint64_t>(bytes_max / piece_bytes, 2));
    if (auto done = memory_.reserve(count_ * piece_bytes, "copies of frozen memory"); !done) {
        return done;
    }
    if (auto done = below_.reserve(count_, "copies of frozen memory"); !done) {
        return done;
    }
    if (auto done = piece_of_.reserve(count_, "copies of frozen memory"); !done) {
        return done;
    }
    madvise(memory_.data(), count_ * piece_bytes, MADV_HUGEPAGE);
    sort_free_slots();
    return {};
}

void SnapshotStaging::sort_free_slots() noexcept
{
    for (std::uint32_t slot = 0; slot < count_; ++slot) {
        below_[slot] = slot + 1 < count_ ? slot + 1 : none;
    }
    free_.store(0, std::memory_order_relaxed);
    free_count_.store(count_, std::memory_order_release);
}

void SnapshotStaging::push(Top& top, std::uint32_t slot) noexcept
{
    std::uint64_t seen = top.load(std::memory_order_relaxed);
    std::uint64_t wanted = 0;
    do {
        std::atomic_ref<std::uint32_t>(below_[slot]).store(static_cast<std::uint32_t>(seen), std::memory_order_relaxed);
        wanted = ((seen >> 32) + 1) << 32 | slot;
    } while (!top.compare_exchange_weak(seen, wanted, std::memory_order_release, std::memory_order_relaxed));
}

std::uint32_t SnapshotStaging::pop(Top& top) noexcept
{
    std::uint64_t seen = top.load(std::memory_order_acquire);
    while (true) {
        const auto slot = static_cast<std::uint32_t>(seen);
        if (slot == none) {
            return none;
        }
        const std::uint32_t below = std::atomic_ref<std::uint32_t>(below_[slot]).load(std::memory_order_relaxed);
        const std::uint64_t wanted = ((seen >> 32) + 1) << 32 | below;
        if (top.compare_exchange_weak(seen, wanted, std::memory_order_acquire, std::memory_order_acquire)) {
            return slot;
        }
    }
}

std::uint32_t SnapshotStaging::take(std::uint32_t spare) noexcept
{
    std::uint32_t free = free_count_.load(std::memory_order_relaxed);
    do {
        if (free <= spare) {
            return none;
        }
    } while (!free_count_.compare_exchange_weak(free, free - 1, std::memory_order_acquire, std::memory_order_relaxed));
    const std::uint64_t in_use = count_ - (free - 1);
    raise_to(used_, in_use);
    raise_to(peak_, in_use);
    // A slot is pushed before it is counted, so there is one for each thread that was counted.
    return pop(free_);
}

void SnapshotStaging::fill(std::uint32_t slot, std::uint32_t piece) noexcept
{
    piece_of_[slot] = piece;
    push(filled_, slot);
}

void SnapshotStaging::give_back(std::uint32_t slot) noexcept
{
    push(free_, slot);
    free_count_.fetch_add(1, std::memory_order_release);
}

SnapshotStaging::Filled SnapshotStaging::next_filled() noexcept
{
    const std::uint32_t slot = pop(filled_);
    return {slot, slot != none ? piece_of_[slot] : none};
}

void SnapshotStaging::end_snapshot() noexcept
{
    const std::uint64_t used = used_.exchange(0, std::memory_order_relaxed);
    // A slow decay: a program that writes in bursts keeps its staging memory between them.
    recent_ = std::max(used, recent_ - recent_ / 64);
    held_ = std::max(held_, used);
    constexpr std::uint64_t worth_returning = 8;
    // The lowest slots are taken first, so what few snapshots need is at the end.
    if (held_ > 2 * recent_ + worth_returning) {
        memory_.discard_from(recent_ * piece_bytes);
        held_ = recent_;
    }
}

void SnapshotStaging::note_idle() noexcept
{
    if (std::exchange(held_, 0) != 0) {
        memory_.discard_from(0);
    }
    recent_ = 0;
}

}  // namespace stillpoint::pronto

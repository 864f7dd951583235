#pragma once
// Marks of a collection, on objects that it has found to be reachable: a bit for each block, and a list of marked objects whose pointers
// are still to be followed. Transactions tell of every pointer that they change while a collection runs, old and new, so that none is
// missed (a snapshot-at-the-beginning barrier that is told of new pointers too).

#include <atomic>
#include <cstdint>
#include <mutex>

#include "engines/breeze/breeze_layout.hpp"
#include "engines/breeze/reserved_list.hpp"
#include "os/futex.hpp"

namespace stillpoint::breeze {

class Marks {
public:
    /// Begins a collection: nothing is marked. Errors: no_memory.
    [[nodiscard]] Result<void> begin(std::uint64_t image_bytes)
    {
        const std::uint64_t granules = image_bytes / granule_bytes;
        const std::lock_guard hold(lock_);
        if (bits_.capacity() != 0) {  // A thread that has seen the last collection may still mark: the memory stays.
            bits_.discard_from(0);
            grey_.clear();
        } else if (auto bits = bits_.reserve(granules / 64 + 1, "the marks of a collection"); !bits) {
            return bits;
        } else if (auto grey = grey_.reserve(granules, "the marked objects of a collection"); !grey) {
            return grey;
        }
        active_.store(true, std::memory_order_seq_cst);
        return {};
    }
    void end() noexcept { active_.store(false, std::memory_order_release); }

    /// A collection runs: pointers that change are to be told of, and new objects marked.
    [[nodiscard]] bool is_active() const noexcept { return active_.load(std::memory_order_acquire); }
    /// Any thread. True: it was not marked.
    bool mark(std::uint64_t block) noexcept
    {
        const std::uint64_t granule = block / granule_bytes;
        const std::uint64_t bit = std::uint64_t{1} << granule % 64;
        return (std::atomic_ref(bits_[granule / 64]).fetch_or(bit, std::memory_order_acq_rel) & bit) == 0;
    }
    [[nodiscard]] bool is_marked(std::uint64_t block) noexcept
    {
        const std::uint64_t granule = block / granule_bytes;
        return (std::atomic_ref(bits_[granule / 64]).load(std::memory_order_acquire) >> granule % 64 & 1) != 0;
    }
    /// The object is reachable. Any thread. 0: none.
    void reach(std::uint64_t block) noexcept
    {
        if (block != 0 && mark(block)) {
            const std::lock_guard hold(lock_);
            grey_.push_back(block);
        }
    }
    /// One whose pointers are to be followed; 0: there is none.
    [[nodiscard]] std::uint64_t take() noexcept
    {
        const std::lock_guard hold(lock_);
        if (grey_.empty()) {
            return 0;
        }
        const std::uint64_t block = grey_.back();
        grey_.pop_back();
        return block;
    }

private:
    std::atomic<bool> active_{false};
    os::ReservedArray<std::uint64_t> bits_;
    os::FutexLock lock_;
    ReservedList<std::uint64_t> grey_;
};

}  // namespace stillpoint::breeze

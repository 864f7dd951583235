#pragma once
// Which blocks have a name: an index by address, in DRAM, so that freeing a block need not search the directory for its name.
//
// Open addressing. Changes are made under a lock of the owner; a look-up takes none. A slot that becomes free stays a gap for look-ups,
// unless nothing follows it.

#include <atomic>
#include <bit>
#include <cstdint>

#include "core/result.hpp"
#include "os/reserved_array.hpp"

namespace stillpoint {

class NamedBlocks {
public:
    /// Makes room for at most `count` names. Until then, and if it fails, every block may have one.
    [[nodiscard]] Result<void> reserve(std::uint64_t count)
    {
        const std::uint64_t slots = std::bit_ceil(2 * count + 2);
        mask_ = slots - 1;
        return slots_.reserve(slots, "the index of named blocks");
    }
    /// All blocks have been added: look-ups may begin.
    void complete() noexcept { is_complete_.store(true, std::memory_order_release); }
    [[nodiscard]] bool is_complete() const noexcept { return is_complete_.load(std::memory_order_acquire); }

    /// False: the block has no name.
    [[nodiscard]] bool may_have_name(std::uintptr_t address) const noexcept
    {
        if (!is_complete()) [[unlikely]] {
            return true;
        }
        std::uint64_t slot = home_of(address);
        for (std::uint64_t probes = 0; probes <= mask_; ++probes, slot = (slot + 1) & mask_) {
            const std::uintptr_t there = load(slot);
            if (there == address || there == nobody) {
                return there == address;
            }
        }
        return false;
    }

    /// An address may be added several times, and is to be removed as often.
    void add(std::uintptr_t address) noexcept
    {
        std::uint64_t slot = home_of(address);
        for (std::uint64_t probes = 0; slots_.data() != nullptr && probes <= mask_; ++probes, slot = (slot + 1) & mask_) {
            if (load(slot) <= gap) {
                store(slot, address);
                return;
            }
        }
        is_complete_.store(false, std::memory_order_relaxed);  // More names than were announced.
    }

    void remove(std::uintptr_t address) noexcept
    {
        std::uint64_t slot = home_of(address);
        for (std::uint64_t probes = 0; slots_.data() != nullptr && probes <= mask_; ++probes, slot = (slot + 1) & mask_) {
            if (load(slot) == nobody) {
                return;
            }
            if (load(slot) == address) {
                store(slot, gap);
                close_gaps(slot);
                return;
            }
        }
    }

private:
    static constexpr std::uintptr_t nobody = 0;
    static constexpr std::uintptr_t gap = 1;

    /// No probe passes a gap that nothing follows.
    void close_gaps(std::uint64_t slot) noexcept
    {
        while (load(slot) == gap && load((slot + 1) & mask_) == nobody) {
            store(slot, nobody);
            slot = (slot - 1) & mask_;
        }
    }
    [[nodiscard]] std::uint64_t home_of(std::uintptr_t address) const noexcept
    {
        return (address >> 4) * 0x9e3779b97f4a7c15u >> 32 & mask_;
    }
    [[nodiscard]] std::uintptr_t load(std::uint64_t slot) const noexcept
    {
        return std::atomic_ref<std::uintptr_t>(const_cast<std::uintptr_t&>(slots_[slot])).load(std::memory_order_relaxed);
    }
    void store(std::uint64_t slot, std::uintptr_t address) noexcept
    {
        std::atomic_ref<std::uintptr_t>(slots_[slot]).store(address, std::memory_order_relaxed);
    }

    os::ReservedArray<std::uintptr_t> slots_;
    std::uint64_t mask_ = 0;
    std::atomic<bool> is_complete_{false};
};

}  // namespace stillpoint

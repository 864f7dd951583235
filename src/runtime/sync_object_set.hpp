#pragma once
// The DRAM side of the table of synchronisation objects: address -> table entry, looked up without
// a lock, changed under the owner's lock. Memory of its own, mapped once: no malloc.

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace stillpoint {

class SyncObjectSet {
public:
    static constexpr std::uint32_t none = UINT32_MAX;

    /// For up to `capacity` addresses. False: no memory. Forgets what it held.
    [[nodiscard]] bool map(std::uint64_t capacity) noexcept;
    void unmap() noexcept;

    /// Table entry of `address`, or none. Threads: any, also while another changes the set.
    [[nodiscard]] std::uint32_t find(std::uintptr_t address) const noexcept;
    /// Callers hold the lock; the address is not a member and there is room.
    void insert(std::uintptr_t address, std::uint32_t entry) noexcept;
    void erase(std::uintptr_t address) noexcept;

    /// False if no member lies in [address, address + size). May be true without one: members are
    /// counted per region of 64 KiB, and regions share counters.
    [[nodiscard]] bool may_hold_one_in(std::uintptr_t address, std::size_t size) const noexcept;

private:
    struct Slot {
        std::atomic<std::uintptr_t> address;  ///< 0: never used; removed: a probe goes on past it
        std::atomic<std::uint32_t> entry;
    };
    static constexpr std::uintptr_t removed = 1;
    static constexpr unsigned region_shift = 16;
    static constexpr std::size_t regions = 4096;

    [[nodiscard]] std::size_t first_slot(std::uintptr_t address) const noexcept
    {
        return (address * 0x9e3779b97f4a7c15u) >> hash_shift_;
    }
    [[nodiscard]] std::size_t next_slot(std::size_t slot) const noexcept
    {
        return (slot + 1) & (slot_count_ - 1);
    }
    static std::size_t region_of(std::uintptr_t address) noexcept
    {
        return (address >> region_shift) % regions;
    }
    [[nodiscard]] Slot* slot_of(std::uintptr_t address) const noexcept;

    Slot* slots_ = nullptr;
    std::size_t slot_count_ = 0;
    unsigned hash_shift_ = 0;
    std::atomic<std::uint32_t> members_in_region_[regions]{};
};

}  // namespace stillpoint

#include "runtime/sync_object_set.hpp"

#include <bit>
#include <sys/mman.h>

namespace stillpoint {

bool SyncObjectSet::map(std::uint64_t capacity) noexcept
{
    unmap();
    const std::size_t count = std::bit_ceil(static_cast<std::size_t>(capacity) * 2 + 2);
    void* memory = mmap(nullptr, count * sizeof(Slot), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return false;
    }
    slots_ = static_cast<Slot*>(memory);
    slot_count_ = count;
    hash_shift_ = 64 - static_cast<unsigned>(std::countr_zero(count));
    return true;
}

void SyncObjectSet::unmap() noexcept
{
    if (slots_ != nullptr) {
        munmap(slots_, slot_count_ * sizeof(Slot));
        slots_ = nullptr;
    }
    for (auto& members : members_in_region_) {
        members.store(0, std::memory_order_relaxed);
    }
}

SyncObjectSet::Slot* SyncObjectSet::slot_of(std::uintptr_t address) const noexcept
{
    std::size_t slot = first_slot(address);
    for (std::size_t probes = 0; probes < slot_count_; ++probes, slot = next_slot(slot)) {
        const auto found = slots_[slot].address.load(std::memory_order_acquire);
        if (found == address) {
            return &slots_[slot];
        }
        if (found == 0) {
            return nullptr;
        }
    }
    return nullptr;
}

std::uint32_t SyncObjectSet::find(std::uintptr_t address) const noexcept
{
    const Slot* slot = slot_of(address);
    return slot == nullptr ? none : slot->entry.load(std::memory_order_relaxed);
}

void SyncObjectSet::insert(std::uintptr_t address, std::uint32_t entry) noexcept
{
    std::size_t slot = first_slot(address);
    while (slots_[slot].address.load(std::memory_order_relaxed) > removed) {
        slot = next_slot(slot);
    }
    members_in_region_[region_of(address)].fetch_add(1, std::memory_order_relaxed);
    slots_[slot].entry.store(entry, std::memory_order_relaxed);
    slots_[slot].address.store(address, std::memory_order_release);
}

void SyncObjectSet::erase(std::uintptr_t address) noexcept
{
    Slot* const found = slot_of(address);
    if (found == nullptr) {
        return;
    }
    members_in_region_[region_of(address)].fetch_sub(1, std::memory_order_relaxed);
    found->address.store(removed, std::memory_order_release);
    // The end of a probe run needs no marks: nothing lies behind them. Keeps misses short.
    auto slot = static_cast<std::size_t>(found - slots_);
    while (slots_[next_slot(slot)].address.load(std::memory_order_relaxed) == 0 &&
           slots_[slot].address.load(std::memory_order_relaxed) == removed) {
        slots_[slot].address.store(0, std::memory_order_release);
        slot = (slot + slot_count_ - 1) & (slot_count_ - 1);
    }
}

bool SyncObjectSet::may_hold_one_in(std::uintptr_t address, std::size_t size) const noexcept
{
    const auto last = (address + size - 1) >> region_shift;
    if (last - (address >> region_shift) >= regions) {
        return true;
    }
    for (auto region = address >> region_shift; region <= last; ++region) {
        if (members_in_region_[region % regions].load(std::memory_order_relaxed) != 0) {
            return true;
        }
    }
    return false;
}

}  // namespace stillpoint

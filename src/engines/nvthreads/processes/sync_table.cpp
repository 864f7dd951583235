#include "engines/nvthreads/processes/sync_table.hpp"

#include <algorithm>
#include <sysexits.h>

#include "os/log.hpp"

namespace stillpoint::nvthreads::processes {

void HeldLocks::add(SyncState& state, bool is_shared) noexcept
{
    const std::uint32_t count = count_.load(std::memory_order_relaxed);
    if (count < places) {
        entries_[count] = {&state, is_shared};
        count_.store(count + 1, std::memory_order_release);
    }
}

/// The newest is nearly always the last.
void HeldLocks::remove(const SyncState& state) noexcept
{
    const std::uint32_t count = count_.load(std::memory_order_relaxed);
    for (std::uint32_t i = count; i != 0; --i) {
        if (entries_[i - 1].state == &state) {
            entries_[i - 1] = entries_[count - 1];
            count_.store(count - 1, std::memory_order_release);
            return;
        }
    }
}

bool HeldLocks::holds(const SyncState& state) const noexcept
{
    const auto end = entries_.begin() + count_.load(std::memory_order_relaxed);
    return std::any_of(entries_.begin(), end, [&](const Entry& entry) { return entry.state == &state; });
}

SyncState& SyncTable::state_of(const volatile void* object) noexcept
{
    const auto address = reinterpret_cast<std::uintptr_t>(object);
    constexpr std::uintptr_t golden_ratio = 0x9e37'79b9'7f4a'7c15;
    std::size_t place = (address * golden_ratio) >> 42;
    static_assert(places == std::size_t{1} << (64 - 42));
    for (std::size_t tried = 0; tried < places; ++tried) {
        SyncState& state = states_[place];
        std::uintptr_t seen = state.address.load(std::memory_order_acquire);
        if (seen == address || (seen == 0 && (state.address.compare_exchange_strong(seen, address) || seen == address))) {
            return state;
        }
        place = (place + 1) % places;
    }
    os::log(os::Severity::error,
            "this program uses more than {} locks, condition variables, barriers and semaphores, the maximum with "
            "threads=processes; use threads=threads",
            places);
    os::direct_call(SYS_exit_group, EX_UNAVAILABLE);
    __builtin_unreachable();
}

SyncState& SyncTable::reset(const volatile void* object) noexcept
{
    SyncState& state = state_of(object);
    state.word.store(0, std::memory_order_relaxed);
    state.count.store(0, std::memory_order_relaxed);
    state.marks.store(0, std::memory_order_relaxed);
    state.waiters.store(0, std::memory_order_relaxed);
    state.phase.store(0, std::memory_order_release);
    return state;
}

}  // namespace stillpoint::nvthreads::processes

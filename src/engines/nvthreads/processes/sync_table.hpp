#pragma once
// SyncTable: the state of the program's synchronisation objects, by their addresses. Their own words are of no use: those of an object in
// durable memory lie in private pages. The words in the program's memory still tell an object's kind, which its initialiser has set.
//
// Each state has the thread that holds it, so that the supervisor can release what a process held that died.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "engines/nvthreads/processes/shared_futex.hpp"

namespace stillpoint::nvthreads::processes {

/// One object. What the words mean is known to the file of its kind.
struct alignas(64) SyncState {
    std::atomic<std::uintptr_t> address;  ///< 0: the place is free
    SharedWord word;       ///< the futex
    SharedWord count;      ///< of a recursive mutex; readers; a barrier's size
    SharedWord marks;      ///< of a mutex whose holder died
    SharedWord waiters;
    SharedWord phase;
};

/// The locks that one thread holds: entered before the object is acquired, and left after its release. In shared memory.
class HeldLocks {
public:
    static constexpr std::uint32_t places = 250;

    void add(SyncState& state, bool is_shared) noexcept;
    void remove(const SyncState& state) noexcept;
    [[nodiscard]] bool holds(const SyncState& state) const noexcept;
    /// Visits and forgets all.
    template <class Visit>
    void take_all(Visit&& visit) noexcept
    {
        for (std::uint32_t i = count_.exchange(0, std::memory_order_acq_rel); i != 0; --i) {
            visit(*entries_[i - 1].state, entries_[i - 1].is_shared);
        }
    }

private:
    struct Entry {
        SyncState* state;
        bool is_shared;  ///< held for reading
    };
    std::atomic<std::uint32_t> count_{0};
    std::array<Entry, places> entries_{};
};

class SyncTable {
public:
    static constexpr std::size_t places = std::size_t{1} << 22;

    /// The object's state; a new one has zeroes. Ends the program where there are more objects than places.
    [[nodiscard]] SyncState& state_of(const volatile void* object) noexcept;
    /// The object is made again: nothing of an earlier one at its address is left.
    SyncState& reset(const volatile void* object) noexcept;

private:
    std::array<SyncState, places> states_;
};

}  // namespace stillpoint::nvthreads::processes

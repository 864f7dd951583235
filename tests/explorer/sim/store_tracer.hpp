#pragma once
// Store tracer: ordinary stores of the program into a mapped range become store events of the trace, in the order in which
// they were made, whichever thread made them.
//
// The range is mapped read-only. A store faults, and its instruction is executed once more, one step long, on a second mapping of
// the same memory: the effective address is shifted by the base of the segment GS, which nothing else uses. The range itself
// never becomes writable, so no store of another thread passes unseen meanwhile. One lock orders steps, and the medium's own
// stores and write backs with them. A step that changes no byte makes no event.
//
// Limits: x86-64 Linux; a program that uses GS, or stores from inside a handler of an asynchronous signal that interrupts
// the medium, does not get on with it. Non-temporal stores of the program are recorded as ordinary ones.

#include <cstddef>
#include <cstdint>

#include "core/result.hpp"
#include "media/observer.hpp"

namespace stillpoint::sim {

#if defined(__x86_64__)
inline constexpr bool stores_can_be_traced = true;
#else
inline constexpr bool stores_can_be_traced = false;
#endif

/// Maps the range, which lies in `fd` from its offset on, in place of what lies at its address. All are multiples of page_bytes.
/// Errors: unsupported (another processor; the address lies above `writable`), no_memory (too many ranges, or no
/// mapping), io (no handlers).
[[nodiscard]] Result<void> trace_stores(const ObservedRange& range, int fd);

/// Stores into ranges of this memory are no longer traced: they end the program.
void forget_traced(const std::byte* writable_begin, std::uint64_t size) noexcept;

/// In the file that the address is mapped from; UINT64_MAX where nothing is traced.
[[nodiscard]] std::uint64_t traced_offset(std::uintptr_t address) noexcept;

/// While one lives, no store is traced: what its owner records stands in one place among them. Not recursive.
class BetweenTracedStores {
public:
    BetweenTracedStores() noexcept;
    BetweenTracedStores(const BetweenTracedStores&) = delete;
    BetweenTracedStores& operator=(const BetweenTracedStores&) = delete;
    ~BetweenTracedStores();
};

}  // namespace stillpoint::sim

#pragma once
// Kernel writes: durable memory that system calls store into.
//
// A device stores through pages that the kernel has pinned. The page tables tell of the pin, not of the bytes that arrive later: a page
// that is armed again and copied in between is stale in that copy, and is not found again. So each call announces its range, and hands
// over what it stored when it returns. A range is
//
//   in flight  from before the call until after it: its pages stay writable, and a stop takes them as written;
//   stored     from the return of the call until a collect has taken its pages.

#include <cstddef>
#include <cstdint>

#include "core/result.hpp"
#include "core/sync.hpp"

namespace stillpoint::kernel_writes {

/// A run of pages, by address; empty where begin == end.
struct PageRun {
    std::uintptr_t begin;
    std::uintptr_t end;
};

/// Where a range in flight is kept.
using Slot = std::uint32_t;
inline constexpr Slot no_slot = UINT32_MAX;

/// Called with a range of which it is not known whether it was stored to.
using Stored = void (*)(void* address, std::size_t size) noexcept;

/// Memory for the set of stored pages. Errors: no_memory.
[[nodiscard]] Result<void> reserve();

/// The calling thread begins a call. `frame`: the address of an object on the stack that will withdraw its ranges. Ranges of frames that
/// this thread has left by a jump go to `stored`. Async-signal-safe.
void begin_call(const void* frame, Stored stored) noexcept;
/// That call is about to store into [address, + size), of which at least the first byte lies in the window. When this returns, no tracker
/// protects pages of the range any more. Async-signal-safe.
[[nodiscard]] Slot announce(const void* address, std::size_t size, const void* frame) noexcept;
/// The call has returned, or was left by unwinding. Async-signal-safe.
void withdraw(Slot slot, const void* frame) noexcept;
/// All slots of the calling thread that `frame` has announced, and so many that it got none for.
void withdraw_of(const void* frame, std::size_t without_slot) noexcept;
/// The range of the calling thread stays in flight when the thread has ended: until withdraw_outliving(), by any thread.
void outlive_thread(Slot slot) noexcept;
void withdraw_outliving(Slot slot) noexcept;
/// Announces a request that some thread ends later, which knows it by `request`, the address of what describes it. One that `request`
/// described before has ended.
void announce_request(const void* address, std::size_t size, const void* request, Stored stored) noexcept;
void end_request(const void* request, Stored stored) noexcept;
/// The pages of [address, + size) were stored to: before the range is withdrawn. Async-signal-safe.
void note_stored(const void* address, std::size_t size) noexcept;
/// The calling thread ends: ranges that it has left by a jump go to `stored`.
void end_thread(Stored stored) noexcept;
void reset_after_fork() noexcept;

/// Lives while pages are chosen and protected: a page that is not in flight now does not become so before the end of it.
class Protecting {
public:
    Protecting() noexcept;
    ~Protecting();
    Protecting(const Protecting&) = delete;
    Protecting& operator=(const Protecting&) = delete;
};

/// The part of [begin, end) in flight that comes first, page by page; {end, end} where there is none.
[[nodiscard]] PageRun first_in_flight(std::uintptr_t begin, std::uintptr_t end) noexcept;
/// Every range in flight, as far as it lies in [begin, end); some may overlap. Ranges for which there was no slot are left out.
void visit_in_flight(std::uintptr_t begin, std::uintptr_t end, void (*visit)(void* context, PageRun run), void* context) noexcept;
/// Takes the stored pages of [begin, end). By one thread at a time. After visit_in_flight: what that missed is here.
void take_stored(std::uintptr_t begin, std::uintptr_t end, void (*visit)(void* context, PageRun run), void* context) noexcept;

}  // namespace stillpoint::kernel_writes

#pragma once
// Where the media tell an observer what they have just done to their file, so that the crash explorer can hold their own fences and
// syncs to account. Only files that are built with the canaries' switches do; in the product these functions do nothing.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/result.hpp"

namespace stillpoint {

enum class MediumEvent : std::uint8_t {
    store,              ///< a store through the caches
    nontemporal_store,  ///< a store past them
    write_back,         ///< of the lines that overlap the range
    fence,
    block_write,        ///< handed to the kernel or the disk
    sync,               ///< a sync of content and size that succeeded
    sync_failed,        ///< one that failed: what was pending may be lost, and the kernel has forgotten it
    resize,             ///< value: the new size
    name,               ///< the file got its name
    name_sync,          ///< a sync of the directory
    replica_record,     ///< the record beside a pool with a replica is written from here on; data: its bytes
    replica_record_sync,  ///< and is durable
};

/// A range of addresses that shows part of a file.
struct ObservedRange {
    std::byte* address;
    std::uint64_t size;
    std::uint64_t offset;  ///< of its first byte, in the file
    std::byte* writable;   ///< the same memory, where an observer may store
};

/// Threads: its functions are called by any, at once.
class MediumObserver {
public:
    virtual ~MediumObserver() = default;
    /// `data`: `size` bytes, of stores and block writes.
    virtual void saw(MediumEvent event, std::uint64_t offset, const void* data, std::uint64_t size, std::uint64_t value) noexcept = 0;
    /// The program stores into the range itself from now on; `fd` is the file. The observer may map the range again.
    virtual Result<void> saw_mapping(const ObservedRange& range, int fd) = 0;
    /// The write back of lines at these addresses of ranges that the program stores into.
    virtual void saw_write_backs(std::span<const std::uintptr_t> line_addresses) noexcept = 0;
};

#if defined(STILLPOINT_CANARIES)
inline namespace with_canaries {
inline constexpr bool media_are_observed = true;
/// Set before a medium is made; nullptr: none.
inline std::atomic<MediumObserver*> medium_observer{nullptr};

inline void observe(MediumEvent event, std::uint64_t offset = 0, const void* data = nullptr, std::uint64_t size = 0,
                    std::uint64_t value = 0) noexcept
{
    if (MediumObserver* const observer = medium_observer.load(std::memory_order_acquire); observer != nullptr) {
        observer->saw(event, offset, data, size, value);
    }
}

inline Result<void> observe_mapping(const ObservedRange& range, int fd)
{
    MediumObserver* const observer = medium_observer.load(std::memory_order_acquire);
    return observer != nullptr ? observer->saw_mapping(range, fd) : Result<void>{};
}

inline void observe_write_backs(std::span<const std::uintptr_t> line_addresses) noexcept
{
    if (MediumObserver* const observer = medium_observer.load(std::memory_order_acquire); observer != nullptr) {
        observer->saw_write_backs(line_addresses);
    }
}
}  // namespace with_canaries
#else
inline namespace without_canaries {
inline constexpr bool media_are_observed = false;
constexpr void observe(MediumEvent, std::uint64_t = 0, const void* = nullptr, std::uint64_t = 0, std::uint64_t = 0) noexcept {}
inline Result<void> observe_mapping(const ObservedRange&, int) { return {}; }
constexpr void observe_write_backs(std::span<const std::uintptr_t>) noexcept {}
}  // namespace without_canaries
#endif

}  // namespace stillpoint

#pragma once
// Addresses that the library has mapped for durable memory, and its own calls that change those mappings. The interposer refuses such
// calls of the program (interpose/mappings.cpp); the calls below are the library's and say so, since they may reach the same shims.

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <sys/mman.h>

namespace stillpoint::os {

/// While one lives, calls of this thread are the library's own. Async-signal-safe.
class OwnMappingCall {
public:
    OwnMappingCall() noexcept { ++depth_; }
    ~OwnMappingCall() { --depth_; }
    OwnMappingCall(const OwnMappingCall&) = delete;
    OwnMappingCall& operator=(const OwnMappingCall&) = delete;
    [[nodiscard]] static bool is_under_way() noexcept { return depth_ != 0; }

private:
    [[gnu::tls_model("initial-exec"), gnu::visibility("hidden")]] static constinit thread_local unsigned depth_;
};

/// mmap with MAP_FIXED, munmap, mprotect and madvise on the library's own addresses. As libc's.
void* map_own(void* address, std::size_t size, int protection, int flags, int file, off_t offset) noexcept;
int unmap_own(void* address, std::size_t size) noexcept;
int protect_own(void* address, std::size_t size, int protection) noexcept;
int advise_own(void* address, std::size_t size, int advice) noexcept;
/// Finds memory for all pages of the range at once, which takes a fraction of what a fault for each takes; or for none.
void populate_own(void* address, std::size_t size) noexcept;

struct AddressRange {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
};

/// From here on the program may not map over [address, + size). False: too many ranges.
[[nodiscard]] bool claim_mapping(const void* address, std::size_t size) noexcept;
void disown_mapping(const void* address) noexcept;
/// In a child made by fork, whose memory is a private copy: all of them.
void disown_mappings_after_fork() noexcept;
/// The claimed range that [begin, end) meets; empty: none. Any thread; async-signal-safe.
[[nodiscard]] AddressRange claimed_mapping(std::uintptr_t begin, std::uintptr_t end) noexcept;

}  // namespace stillpoint::os

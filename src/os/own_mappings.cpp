#include "os/own_mappings.hpp"

#include <array>
#include <atomic>
#include <mutex>

#include "os/futex.hpp"

namespace stillpoint::os {

constinit thread_local unsigned OwnMappingCall::depth_ [[gnu::tls_model("initial-exec")]] = 0;

void* map_own(void* address, std::size_t size, int protection, int flags, int file, off_t offset) noexcept
{
    const OwnMappingCall own;
    return mmap(address, size, protection, flags, file, offset);
}

int unmap_own(void* address, std::size_t size) noexcept
{
    const OwnMappingCall own;
    return munmap(address, size);
}

int protect_own(void* address, std::size_t size, int protection) noexcept
{
    const OwnMappingCall own;
    return mprotect(address, size, protection);
}

int advise_own(void* address, std::size_t size, int advice) noexcept
{
    const OwnMappingCall own;
    return madvise(address, size, advice);
}

void populate_own(void* address, std::size_t size) noexcept
{
#if !defined(MADV_POPULATE_WRITE)
    constexpr int MADV_POPULATE_WRITE = 23;  // Linux 5.14.
#endif
    const int error = errno;  // The program may be inside a call that leaves it alone.
    static_cast<void>(advise_own(address, size, MADV_POPULATE_WRITE));
    errno = error;
}

namespace {

/// A range of a pool for each that is open, and the card table.
constexpr std::size_t ranges_max = 64;

struct Claim {
    std::atomic<std::uintptr_t> begin{0};  ///< stored last, and cleared first; 0: the claim is free
    std::atomic<std::uintptr_t> end{0};
};

constinit std::array<Claim, ranges_max> claims{};
constinit FutexLock changing;

}  // namespace

bool claim_mapping(const void* address, std::size_t size) noexcept
{
    const std::lock_guard lock(changing);
    for (Claim& claim : claims) {
        if (claim.begin.load(std::memory_order_relaxed) == 0) {
            const auto begin = reinterpret_cast<std::uintptr_t>(address);
            claim.end.store(begin + size, std::memory_order_relaxed);
            claim.begin.store(begin, std::memory_order_release);
            return true;
        }
    }
    return false;
}

void disown_mapping(const void* address) noexcept
{
    const std::lock_guard lock(changing);
    for (Claim& claim : claims) {
        if (claim.begin.load(std::memory_order_relaxed) == reinterpret_cast<std::uintptr_t>(address)) {
            claim.begin.store(0, std::memory_order_release);
        }
    }
}

void disown_mappings_after_fork() noexcept
{
    changing.reset_after_fork();
    for (Claim& claim : claims) {
        claim.begin.store(0, std::memory_order_release);
    }
}

AddressRange claimed_mapping(std::uintptr_t begin, std::uintptr_t end) noexcept
{
    for (const Claim& claim : claims) {
        const AddressRange range{claim.begin.load(std::memory_order_acquire), claim.end.load(std::memory_order_relaxed)};
        if (range.begin != 0 && begin < range.end && range.begin < end) {
            return range;
        }
    }
    return {};
}

}  // namespace stillpoint::os

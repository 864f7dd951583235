#pragma once
// The memory of a tracker that protects pages by mprotect: it begins at one address and grows at its end.

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <sys/mman.h>

#include "core/result.hpp"
#include "core/units.hpp"
#include "os/own_mappings.hpp"

namespace stillpoint {

/// Grown by one thread; asked by any, also in a signal handler.
class ProtectedPages {
public:
    /// A run of pages, counted from the first one.
    struct Run {
        std::uint64_t first;
        std::uint64_t end;
    };

    /// Appends [begin, begin + size), read-only from now on. Errors: no_memory.
    [[nodiscard]] Result<void> add(std::byte* begin, std::size_t size)
    {
        if (base_ == 0) {
            base_ = reinterpret_cast<std::uintptr_t>(begin);
        }
        end_.store(reinterpret_cast<std::uintptr_t>(begin) + size, std::memory_order_release);
        if (os::protect_own(begin, size, PROT_READ) != 0) {
            return fail(SP_E_NO_MEMORY, errno, "cannot write-protect {} bytes of durable memory", size);
        }
        return {};
    }
    void make_all_writable() noexcept
    {
        if (base_ != 0) {
            os::protect_own(reinterpret_cast<void*>(base_), end() - base_, PROT_READ | PROT_WRITE);
        }
    }

    [[nodiscard]] std::uint64_t count() const noexcept { return (end() - base_) / page_bytes; }
    [[nodiscard]] std::uintptr_t address_of(std::uint64_t page) const noexcept { return base_ + page * page_bytes; }
    /// Index of an address that is known to lie here, or of the end.
    [[nodiscard]] std::uint64_t index_of(std::uintptr_t address) const noexcept { return (address - base_) / page_bytes; }

    [[nodiscard]] std::optional<std::uint64_t> find(const void* address) const noexcept
    {
        const Run run = touched(address, 1);
        return run.first != run.end ? std::optional(run.first) : std::nullopt;
    }
    /// The pages that [address, + size) touches, as far as they lie here; none if its first byte does not.
    [[nodiscard]] Run touched(const void* address, std::size_t size) const noexcept
    {
        const auto begin = reinterpret_cast<std::uintptr_t>(address);
        const std::uintptr_t own_end = end();
        if (size == 0 || base_ == 0 || begin < base_ || begin >= own_end) {
            return {0, 0};
        }
        const std::uintptr_t last = size - 1 < own_end - 1 - begin ? begin + size - 1 : own_end - 1;
        return {index_of(begin), index_of(last) + 1};
    }

private:
    [[nodiscard]] std::uintptr_t end() const noexcept { return end_.load(std::memory_order_acquire); }

    std::uintptr_t base_ = 0;
    std::atomic<std::uintptr_t> end_{0};
};

}  // namespace stillpoint

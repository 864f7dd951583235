#pragma once
// EarlyPages: the pages of the image that were stored to before the logs are in use. The first epoch of a run has them.

#include <cstdint>
#include <span>

#include "core/units.hpp"
#include "os/reserved_array.hpp"

namespace stillpoint::logs {

/// Threads: one at a time.
class EarlyPages {
public:
    /// Errors: no_memory.
    [[nodiscard]] Result<void> reserve(std::uint64_t image_pages_max)
    {
        return pages_.reserve(2 * image_pages_max, "stores before the pool is in use");
    }
    void note(std::uint64_t offset, std::size_t size) noexcept
    {
        for (std::uint64_t page = offset / page_bytes; page <= (offset + size - 1) / page_bytes; ++page) {
            const bool is_last = count_ != 0 && pages_[count_ - 1] == page;
            if (!is_last && count_ != pages_.capacity()) {
                pages_[count_++] = static_cast<std::uint32_t>(page);
            }
        }
    }
    /// Some come twice.
    [[nodiscard]] std::span<const std::uint32_t> pages() const noexcept { return {pages_.data(), count_}; }

private:
    os::ReservedArray<std::uint32_t> pages_;
    std::uint64_t count_ = 0;
};

}  // namespace stillpoint::logs

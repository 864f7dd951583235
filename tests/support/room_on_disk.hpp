#pragma once
// For tests: which bytes of a file have no room on the disk yet.

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <vector>

#include "media/medium.hpp"

namespace stillpoint::testing {

/// Threads: any.
class RoomOnDisk {
public:
    void leave_without(const FileRange& range)
    {
        const std::lock_guard guard(lock_);
        const std::uint64_t pages = range.end / page_bytes;
        without_.resize(std::max<std::size_t>(without_.size(), pages));
        std::fill(without_.begin() + static_cast<std::ptrdiff_t>(range.begin / page_bytes),
                  without_.begin() + static_cast<std::ptrdiff_t>(pages), true);
    }
    void leave_without(const TwoFileRanges& ranges)
    {
        for (const FileRange& range : ranges) {
            leave_without(range);
        }
    }
    void take(FileRange range) noexcept
    {
        const std::lock_guard guard(lock_);
        const std::uint64_t end = std::min<std::uint64_t>(range.end / page_bytes, without_.size());
        for (std::uint64_t page = range.begin / page_bytes; page < end; ++page) {
            without_[page] = false;
        }
    }
    [[nodiscard]] std::uint64_t bytes_without() const noexcept
    {
        const std::lock_guard guard(lock_);
        return static_cast<std::uint64_t>(std::count(without_.begin(), without_.end(), true)) * page_bytes;
    }
    [[nodiscard]] bool is_there_for(std::uint64_t offset, std::uint64_t size) const noexcept
    {
        const std::lock_guard guard(lock_);
        const std::uint64_t end = std::min<std::uint64_t>((offset + size + page_bytes - 1) / page_bytes, without_.size());
        for (std::uint64_t page = offset / page_bytes; page < end; ++page) {
            if (without_[page]) {
                return false;
            }
        }
        return true;
    }

private:
    mutable std::mutex lock_;
    std::vector<bool> without_;  ///< by page
};

}  // namespace stillpoint::testing

#pragma once
// How many records a round of replay takes, so that the pages it touches find room.

#include <cstdint>
#include <span>

#include "logs/log_bytes.hpp"
#include "os/reserved_array.hpp"

namespace stillpoint::logs {

/// Threads: one at a time.
class RoundSize {
public:
    /// Errors: no_memory (no address space).
    [[nodiscard]] Result<void> reserve(std::uint64_t image_pages_max);

    struct Counted {
        std::uint64_t records;  ///< whole transactions; 0: the first one alone touches more pages
        std::uint64_t pages;    ///< distinct ones that those records touch
    };
    /// The first records of `oldest_first` that touch at most `pages_max` pages. No malloc.
    [[nodiscard]] Counted count(const LogBytes& bytes, std::span<const RecordRef> oldest_first, std::uint64_t pages_max) noexcept;

private:
    /// Counts the record's pages that were not counted before.
    void add_pages(const RecordHeader* record) noexcept;

    os::ReservedBitmap is_counted_;
    os::ReservedArray<std::uint32_t> pages_;
    std::uint64_t page_count_ = 0;
};

}  // namespace stillpoint::logs

#pragma once
// Which data pages of the pool file are free. Kept in DRAM only: recovery rebuilds it from the
// version table, so an epoch that never committed frees what it took by not being there.

#include <cstdint>

#include "core/result.hpp"
#include "os/reserved_array.hpp"
#include "versions/page_layout.hpp"

namespace stillpoint::versions {

/// Threads: used by the checkpoint thread alone, after recovery.
class LocationAllocator {
public:
    struct Run {
        std::uint32_t first = 0;
        std::uint32_t count = 0;  ///< 0: nothing is free
    };

    [[nodiscard]] Result<void> reserve(std::uint64_t file_pages_max);

    /// Makes the segment's data pages known, and free.
    void add_segment(const Segment& segment) noexcept;

    /// Up to `wanted` free neighbours. It prefers long runs: from where the last one ended it takes
    /// the first of at least 64 pages, and shorter ones only when a whole turn found none, so
    /// that the copies of one epoch lie together and are written in few large writes.
    [[nodiscard]] Run take_run(std::uint32_t wanted) noexcept;

    /// False for what is not a data page.
    [[nodiscard]] bool is_free(std::uint32_t location) const noexcept { return location < end_ && free_.test(location); }
    void take(std::uint32_t location) noexcept;
    void give_back(std::uint32_t location) noexcept;
    [[nodiscard]] std::uint64_t free_pages() const noexcept { return free_pages_; }
    /// Forgets which run lengths were not available: at the start of each epoch.
    void begin_epoch() noexcept { shortest_accepted_ = longest_preferred; }

private:
    static constexpr std::uint32_t longest_preferred = 64;

    [[nodiscard]] Run find_from(std::uint64_t begin, std::uint64_t end, std::uint32_t wanted, std::uint32_t at_least) const noexcept;

    os::ReservedBitmap free_;
    std::uint64_t end_ = 0;  ///< one past the highest known page
    std::uint64_t free_pages_ = 0;
    std::uint64_t cursor_ = 0;
    std::uint32_t shortest_accepted_ = longest_preferred;
};

}  // namespace stillpoint::versions

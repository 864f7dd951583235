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

    /// Second copies of segments that come from here on may have no room.
    void expect_late_second_copies() noexcept { second_copies_are_late_ = true; }
    [[nodiscard]] bool has_late_second_copies() const noexcept { return second_copies_are_late_; }
    /// Makes the segment's data pages known, and free.
    void add_segment(const Segment& segment) noexcept;

    /// These data pages are known; free ones may have no room in the file system.
    void note_without_room(FilePageRange pages) noexcept;
    /// Pages that should get room now, because few others are free; empty: none. They may have it, from an earlier run. note_room() says
    /// that they have.
    [[nodiscard]] FilePageRange room_to_take() noexcept;
    void note_room(FilePageRange pages) noexcept;
    /// That take_run() can give.
    [[nodiscard]] bool has_free_pages() const noexcept { return free_pages_ != 0; }

    /// Up to `wanted` free neighbours. It prefers long runs: from where the last one ended it takes
    /// the first of at least 64 pages, and shorter ones only when a whole turn found none, so
    /// that the copies of one epoch lie together and are written in few large writes.
    [[nodiscard]] Run take_run(std::uint32_t wanted) noexcept;

    /// False for what is not a data page.
    [[nodiscard]] bool is_free(std::uint32_t location) const noexcept { return location < end_ && free_.test(location); }
    [[nodiscard]] bool is_free_and_has_room(std::uint32_t location) const noexcept { return is_free(location) && has_room(location); }
    void take(std::uint32_t location) noexcept;
    void give_back(std::uint32_t location) noexcept;
    /// Forgets which run lengths were not available: at the start of each epoch.
    void begin_epoch() noexcept { shortest_accepted_ = longest_preferred; }

private:
    static constexpr std::uint32_t longest_preferred = 64;

    [[nodiscard]] bool has_room(std::uint64_t page) const noexcept { return !without_room_.test(page); }
    [[nodiscard]] std::uint64_t free_with_room(std::uint64_t word) const noexcept { return free_.word(word) & ~without_room_.word(word); }
    [[nodiscard]] Run find_from(std::uint64_t begin, std::uint64_t end, std::uint32_t wanted, std::uint32_t at_least) const noexcept;

    os::ReservedBitmap free_;
    std::uint64_t end_ = 0;  ///< one past the highest known page
    std::uint64_t free_pages_ = 0;  ///< that have room
    os::ReservedBitmap without_room_;
    bool second_copies_are_late_ = false;
    std::uint64_t room_cursor_ = 0;  ///< no page before it is without room
    std::uint64_t cursor_ = 0;
    std::uint32_t shortest_accepted_ = longest_preferred;
};

}  // namespace stillpoint::versions

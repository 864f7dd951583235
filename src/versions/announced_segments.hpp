#pragma once
// Segments that threads of the program have appended to the pool, until the checkpoint thread knows them.

#include <array>
#include <cstddef>
#include <mutex>

#include "os/futex.hpp"
#include "pool/pool.hpp"
#include "versions/location_allocator.hpp"
#include "versions/page_layout.hpp"
#include "versions/version_table.hpp"

namespace stillpoint::versions {

class AnnouncedSegments {
public:
    /// Any thread, inside a FASE.
    void announce(const Segment& segment) noexcept
    {
        const std::lock_guard guard(lock_);
        segments_[count_++] = segment;
    }

    /// In a stop: what was announced belongs to the table, and its data pages are free.
    void absorb(VersionTable& table, LocationAllocator& locations) noexcept
    {
        const std::lock_guard guard(lock_);
        for (std::size_t i = 0; i < count_; ++i) {
            const Segment& segment = segments_[i];
            table.extend(segment);
            locations.add_free(segment.first_file_page + table_pages_for(segment.image_pages),
                               data_pages_per_image_page * segment.image_pages);
        }
        count_ = 0;
    }

private:
    os::FutexLock lock_;
    std::array<Segment, Pool::segments_max> segments_{};
    std::size_t count_ = 0;
};

}  // namespace stillpoint::versions

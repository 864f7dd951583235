#pragma once
// Segments that threads of the program have appended to the pool, until the checkpoint thread knows them.

#include <array>
#include <cstddef>
#include <mutex>

#include "os/futex.hpp"
#include "pool/pool.hpp"
#include "versions/delta_log.hpp"
#include "versions/location_allocator.hpp"
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
    void absorb(VersionTable& table, LocationAllocator& locations, DeltaLog* log = nullptr) noexcept
    {
        const std::lock_guard guard(lock_);
        for (std::size_t i = 0; i < count_; ++i) {
            table.extend(segments_[i]);
            locations.add_segment(segments_[i]);
            if (log != nullptr) {
                log->add_segment(segments_[i]);
            }
        }
        count_ = 0;
    }

private:
    os::FutexLock lock_;
    std::array<Segment, Pool::segments_max> segments_{};
    std::size_t count_ = 0;
};

}  // namespace stillpoint::versions

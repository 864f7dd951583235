#pragma once
// InPlace: stores log records into page copies where they lie in the pool, line by line, for protocols whose commits wait for that. The
// copy of a page that is stored to is the one that the next epoch will commit; until then nothing reads it, and that epoch stores what it
// lacks.

#include "logs/record_builder.hpp"
#include "os/futex.hpp"
#include "pool/pool.hpp"
#include "versions/location_allocator.hpp"
#include "versions/version_table.hpp"

namespace stillpoint::spht {

/// Threads: the checkpoint thread.
class InPlace {
public:
    InPlace(Pool& pool, const versions::VersionTable& table, const versions::LocationAllocator& locations,
            os::FutexLock& medium_lock) noexcept
        : medium_(pool.medium()), table_(table), locations_(locations), medium_lock_(medium_lock)
    {
    }

    /// Stores the record's words and starts the write back of their lines; the caller fences.
    void apply(const logs::RecordBuilder& record) noexcept;

private:
    void apply_run(logs::Run run, const std::uint64_t* data) noexcept;

    Medium& medium_;
    const versions::VersionTable& table_;
    const versions::LocationAllocator& locations_;
    os::FutexLock& medium_lock_;
};

}  // namespace stillpoint::spht

#include "versions/trim.hpp"

#include "versions/recovered_state.hpp"

namespace stillpoint::versions {

namespace {

void release_free_pages(Medium& medium, const Segment& segment, const LocationAllocator& locations)
{
    const std::uint64_t begin = first_data_page(segment);
    const std::uint64_t end = begin + data_pages_per_image_page * segment.image_pages;
    for (std::uint64_t first = begin; first < end;) {
        std::uint64_t last = first;
        while (last < end && locations.is_free(static_cast<std::uint32_t>(last))) {
            ++last;
        }
        if (last != first) {
            medium.release({first * page_bytes, last * page_bytes});
        }
        first = last + 1;
    }
}

}  // namespace

Result<void> trim_pool(Pool& pool, bool has_delta_log)
{
    VersionTable table;
    LocationAllocator locations;
    Deltas deltas;
    const auto state = recover_state(pool, table, locations, nullptr, has_delta_log ? &deltas : nullptr);
    if (!state) {
        return pass_on(state.error());
    }
    // The epoch before must not be needed any more when its copies go: nothing of this one may be in a cache only.
    write_back_what_was_recovered(pool, table, state->after_crash);
    if (pool.medium().byte_addressable()) {
        pool.medium().fence();
    }
    if (auto synced = pool.medium().sync(); !synced) {
        return synced;
    }
    for (const Segment& segment : pool.segments()) {
        release_free_pages(pool.medium(), segment, locations);
    }
    return pool.medium().sync();
}

}  // namespace stillpoint::versions

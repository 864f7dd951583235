#pragma once
// For tests and fuzzers only: what a restart would find in a pool, as values that can be compared.

#include <cstring>
#include <utility>
#include <vector>

#include "versions/loader.hpp"
#include "versions/recovered_state.hpp"
#include "os/reserved_array.hpp"

namespace stillpoint::versions {

struct RecoveredImage {
    using Bytes = std::vector<std::byte>;

    RecoveryReport report;
    std::uint64_t next_epoch = 0;
    bool after_crash = false;
    PoolFacts facts{};
    std::vector<std::pair<std::uint64_t, Bytes>> pages;  ///< image page and bytes of those that have a copy
    std::vector<std::uint64_t> locations;                ///< of those copies
    std::vector<VersionSlot> slots;                      ///< by image page
    bool pages_not_read = false;                         ///< the slots were those of a known image, hence the pages are too

    [[nodiscard]] bool same_as(const RecoveredImage& other) const
    {
        return report.epoch == other.report.epoch && report.clean == other.report.clean && next_epoch == other.next_epoch &&
               facts.uuid == other.facts.uuid && facts.generation == other.facts.generation &&
               facts.image_bytes == other.facts.image_bytes && facts.image_bytes_max == other.facts.image_bytes_max &&
               facts.base_address == other.facts.base_address && facts.durability == other.facts.durability &&
               (pages_not_read ? same_slots(other) : pages == other.pages);
    }
    [[nodiscard]] bool same_slots(const RecoveredImage& other) const
    {
        return slots.size() == other.slots.size() &&
               (slots.empty() || std::memcmp(slots.data(), other.slots.data(), slots.size() * sizeof(VersionSlot)) == 0);
    }
};

/// The engine's own recovery of an open pool; every page is read and verified, unless each is where `known` has it: then the caller
/// knows that no page copy has changed since. Fills `table`, `locations`, and `deltas`, of a pool that has a delta log.
inline Result<RecoveredImage> recover_image(const Pool& pool, VersionTable& table, LocationAllocator& locations,
                                            const RecoveredImage* known = nullptr, Deltas* deltas = nullptr)
{
    auto recovered = recover_state(pool, table, locations, nullptr, deltas);
    if (!recovered) {
        return pass_on(recovered.error());
    }
    RecoveredImage image{recovered->report, recovered->next_epoch, recovered->after_crash, pool.facts(), {}, {}, {}, false};
    for (std::uint64_t page = 0; page < recovered->pages_end; ++page) {
        image.slots.push_back(table.consistent(page));
    }
    if (known != nullptr && image.same_slots(*known)) {
        image.pages_not_read = true;
        return image;
    }
    // Fresh memory for each image would cost more than the rest. Every page that has a copy begins with other bytes than the copy may have.
    static os::ReservedArray<std::byte> memory;
    if (memory.capacity() < pool.facts().image_bytes) {
        if (auto done = memory.reserve(pool.facts().image_bytes, "a test"); !done) {
            return pass_on(done.error());
        }
    }
    static std::uint64_t junk = 0;
    for (std::uint64_t page = 0; page < recovered->pages_end; ++page) {
        if (table.consistent(page).epoch != 0) {
            junk += 0x9e3779b97f4a7c15;
            std::memcpy(memory.data() + page * page_bytes, &junk, sizeof junk);
        }
    }
    Loader loader;
    if (auto done = loader.prepare({&table, &pool.medium(), recovered->pages_end, nullptr, deltas != nullptr ? &deltas->replay : nullptr});
        !done) {
        return pass_on(done.error());
    }
    if (auto done = loader.load_all(memory.data()); !done) {
        return pass_on(done.error());
    }
    for (std::uint64_t page = 0; page < recovered->pages_end; ++page) {
        if (table.consistent(page).epoch != 0) {
            const std::byte* const bytes = memory.data() + page * page_bytes;
            image.pages.emplace_back(page, RecoveredImage::Bytes(bytes, bytes + page_bytes));
            image.locations.push_back(table.consistent(page).location);
        }
    }
    return image;
}

}  // namespace stillpoint::versions

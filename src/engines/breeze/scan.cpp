#include "engines/breeze/scan.hpp"

#include <algorithm>
#include <mutex>

#include "arch/prefetch.hpp"
#include "core/canary.hpp"
#include "engines/breeze/zone_team.hpp"
#include "os/log.hpp"

namespace stillpoint::breeze {

namespace {

constexpr std::uint64_t reports_max = 10;

class Scan {
public:
    explicit Scan(PoolParts& pool) noexcept : pool_(pool) {}

    /// Which zones have small blocks, and where large ones begin.
    void find_zones();
    void scan_zone(std::uint64_t number);
    [[nodiscard]] ScanFigures figures() const noexcept { return {objects_.load(), unfinished_.load()}; }

private:
    [[nodiscard]] Zones::Zone find_zone(std::uint64_t number, BlockHead& head);
    [[nodiscard]] std::uint64_t granules_of_damaged(std::uint64_t number) const noexcept;
    /// True: the block is free.
    [[nodiscard]] bool examine(std::uint64_t block, std::uint64_t granules);
    [[nodiscard]] bool is_unfinished(const ObjectHeader& header) const noexcept;
    void report(std::uint64_t block, const char* what);

    PoolParts& pool_;
    os::FutexLock lock_;  ///< reports and suspects
    std::atomic<std::uint64_t> objects_{0};
    std::atomic<std::uint64_t> unfinished_{0};
};

void Scan::report(std::uint64_t block, const char* what)
{
    const std::lock_guard hold(lock_);
    ++pool_.damaged_objects;
    if (pool_.findings != nullptr) {
        pool_.findings->damage(fail(SP_E_POOL_CORRUPT, 0, "{}: {} of the object at byte {} of the image is damaged; the others can be read",
                                    pool_.memory.medium().path(), what, block)
                                   .value());
    } else if (pool_.damaged_objects <= reports_max) {
        os::log(
            os::Severity::warning,
            "{}: {} of the object at {:#x} (byte {} of the image) is damaged; the object is kept, and never freed; `stillpoint salvage` "
            "makes a pool of all others",
            pool_.memory.medium().path(), what, pool_.base() + block + object_header_bytes, block);
    }
}

bool Scan::is_unfinished(const ObjectHeader& header) const noexcept
{
    const std::uint64_t number = header.owner >> owner_log_shift;
    const std::uint64_t id = header.owner & ((std::uint64_t{1} << owner_log_shift) - 1);
    return !pool_.is_salvaged && !is_removed(Canary::unfinished_objects) && number < logs_max &&
           id > pool_.activations[number].header().finished;
}

bool Scan::examine(std::uint64_t block, std::uint64_t granules)
{
    ObjectHeader& header = pool_.memory.object(block);
    BlockHead head{};
    if (header.head == 0) {
        return true;
    }
    if (!read_head(pool_.key, block, header.head, head) || (head.state == BlockState::allocated && head.granules != granules)) {
        report(block, "the header");
        return false;
    }
    if (is_unfinished(header)) {
        // Also where the head says so already: a roll back, or a scan, that was killed may have left that in the CPU's caches only. When
        // the transaction's number has passed, the block would be taken for an object.
        if (head.state != BlockState::free) {
            store_word(header.head, head_of(pool_.key, block, {BlockState::free, granules}));
            unfinished_.fetch_add(1, std::memory_order_relaxed);
        }
        pool_.memory.write_back(&header.head, sizeof header.head);
        return true;
    }
    if (head.state == BlockState::free) {
        return true;
    }
    const Type* const type = pool_.type_of(block);
    if (type == nullptr) {
        report(block, "the header");
        return false;
    }
    objects_.fetch_add(1, std::memory_order_relaxed);
    if (references_in(header.counts) == 0 && !type->is_pinned) {
        const std::lock_guard hold(lock_);
        pool_.counts.suspect(block);
    }
    return false;
}

std::uint64_t Scan::granules_of_damaged(std::uint64_t number) const noexcept
{
    const std::uint64_t begin = pool_.zones.offset_of(number);
    for (std::uint64_t granule = 1; granule <= small_granules_max; ++granule) {
        const std::uint64_t block = begin + granule * granule_bytes;
        BlockHead head{};
        if (read_head(pool_.key, block, pool_.memory.object(block).head, head) && granule % head.granules == 0) {
            return head.granules;
        }
    }
    return zone_granules;
}

Zones::Zone Scan::find_zone(std::uint64_t number, BlockHead& head)
{
    const std::uint64_t begin = pool_.zones.offset_of(number);
    const std::uint64_t word = pool_.memory.object(begin).head;
    if (word == 0) {
        return {Zones::Kind::blank, 0};
    }
    const std::uint64_t granules_max = (pool_.zones.count() - number) * zone_granules;
    const bool is_sound = read_head(pool_.key, begin, word, head) && head.granules <= granules_max &&
                          (head.granules > small_granules_max || std::ranges::binary_search(block_sizes, head.granules));
    if (!is_sound) {
        head = {BlockState::allocated, granules_of_damaged(number)};
    }
    if (head.granules <= small_granules_max) {
        return {Zones::Kind::small, head.granules};
    }
    return {head.state == BlockState::free ? Zones::Kind::blank : Zones::Kind::large, head.granules};
}

void Scan::find_zones()
{
    for (std::uint64_t number = 0; number < pool_.zones.count();) {
        BlockHead head{};
        const Zones::Zone found = find_zone(number, head);
        std::uint64_t zones = 1;
        if (found.value > small_granules_max) {
            zones = (found.value + zone_granules - 1) / zone_granules;
        }
        Zones::Zone kept = found;
        if (found.kind == Zones::Kind::large) {
            pool_.zones.set_zone(number, found);  // examine() asks for the block's size.
            kept.kind = examine(pool_.zones.offset_of(number), found.value) ? Zones::Kind::blank : Zones::Kind::large;
        }
        const bool is_cleared = zones > 1 || found.kind == Zones::Kind::large ||
                                is_unfinished(pool_.memory.object(pool_.zones.offset_of(number)));
        if (kept.kind == Zones::Kind::blank && found.value != 0 && is_cleared) {
            pool_.memory.fence();
            pool_.zones.clear_large(number, zones);
        }
        for (std::uint64_t i = 0; i < zones; ++i) {
            const bool is_rest = kept.kind == Zones::Kind::large && i != 0;
            pool_.zones.set_zone(number + i, is_rest                           ? Zones::Zone{Zones::Kind::rest, number}
                                             : kept.kind == Zones::Kind::blank ? Zones::Zone{Zones::Kind::blank, 0}
                                                                               : kept);
        }
        number += zones;
    }
}

void Scan::scan_zone(std::uint64_t number)
{
    const Zones::Zone zone = pool_.zones.zone(number);
    if (zone.kind != Zones::Kind::small) {
        return;
    }
    std::uint64_t* const bits = pool_.zones.free_bits(number);
    const std::uint64_t begin = pool_.zones.offset_of(number);
    const std::uint64_t bytes = zone.value * granule_bytes;
    const std::uint64_t blocks = zone_granules / zone.value;
    std::fill_n(bits, Zones::words_of_zone, 0);
    constexpr std::uint64_t ahead = 8;
    for (std::uint64_t block = 0; block < blocks; ++block) {
        if (block + ahead < blocks) {
            arch::prefetch(&pool_.memory.at<std::byte>(begin + (block + ahead) * bytes), sizeof(ObjectHeader));
        }
        if (examine(begin + block * bytes, zone.value)) {
            bits[block / 64] |= std::uint64_t{1} << block % 64;
        }
    }
    pool_.memory.fence();
}

}  // namespace

ScanFigures scan_zones(PoolParts& pool, unsigned threads)
{
    Scan scan(pool);
    scan.find_zones();
    for_each_zone(pool.zones.count(), threads, [&](unsigned, std::uint64_t zone) { scan.scan_zone(zone); });
    pool.zones.finish_scan();
    return scan.figures();
}

}  // namespace stillpoint::breeze

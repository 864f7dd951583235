#include "engines/breeze/compaction.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "engines/breeze/compacted_image.hpp"
#include "engines/breeze/offline.hpp"
#include "media/open.hpp"

namespace stillpoint::breeze {

namespace {

constexpr std::uint64_t zones_for_one_more = 16;  ///< the room in a new pool: a sixteenth

/// Counts all objects, also those that cannot be reached.
void count_before(PoolParts& parts, CompactionFigures& figures)
{
    for (std::uint64_t number = 0; number < parts.zones.count(); ++number) {
        parts.zones.visit_blocks(number, [&](std::uint64_t block) {
            if (parts.allocated(block)) {
                ++figures.objects_before;
                figures.object_bytes_before += parts.memory.object(block).size;
            }
        });
    }
}

Result<std::uint64_t> size_of_new(const Pool& pool, const CompactedImage& image, const CompactionRequest& request)
{
    const std::uint64_t needed = image.image_bytes_min(0);
    if (request.size_bytes == 0) {
        return image.image_bytes_min((image.zones() + zones_for_one_more - 1) / zones_for_one_more);
    }
    if (request.size_bytes > window_bytes / 2) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "{}: a pool has at most {} GiB: choose a smaller size", pool.medium().path(),
                    window_bytes / 2 / gib);
    }
    const std::uint64_t size = round_up(request.size_bytes, zone_bytes);
    if (size < needed) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "{}: a pool with its {} objects has at least {} MiB: choose a larger size, or none",
                    pool.medium().path(), image.objects(), (needed + mib - 1) / mib);
    }
    return size;
}

/// An empty pool of the same format and durability, whose file has no name yet where the file system has such files.
Result<Pool> create_new(const Pool& pool, const CompactionRequest& request, std::uint64_t image_bytes, std::uintptr_t base)
{
    Pool::CreateOptions create{pool_format(is_journaled(pool)), image_bytes, image_bytes};
    const bool lies_in_window = base >= window_base && base - window_base <= window_bytes - image_bytes;
    create.base_address = lies_in_window ? base : window_base;
    const auto file_bytes = Pool::file_bytes_for(create);
    if (!file_bytes) {
        return pass_on(file_bytes.error());
    }
    MediumOptions options;
    options.path = request.path;
    options.durability = pool.facts().durability;
    options.publish_later = true;
    if (options.durability == Durability::power && lies_in_memory(options.path) && !lies_in_memory(std::string(pool.medium().path()))) {
        return fail(SP_E_UNSUPPORTED, 0,
                    "{} would lie in memory (tmpfs), which ends with the machine, and {} survives that: choose a folder on a disk",
                    options.path, pool.medium().path());
    }
    auto medium = create_medium(options, *file_bytes);
    if (!medium) {
        return pass_on(medium.error());
    }
    return Pool::create(std::move(*medium), create);
}

/// Checks the new pool as `stillpoint check` would. Errors: pool_corrupt; as open_sound_copy().
Result<void> check_new(const Pool& made, std::uint64_t objects, void (*progress)(std::uint64_t done, std::uint64_t total))
{
    const auto copy = open_sound_copy(made, progress);
    if (!copy) {
        return pass_on(copy.error());
    }
    if ((*copy)->figures().objects != objects) {
        return fail(SP_E_POOL_CORRUPT, 0, "{}: the new pool has {} objects in place of {}: its disk has lost some; choose another one",
                    made.medium().path(), (*copy)->figures().objects, objects);
    }
    return {};
}

}  // namespace

Result<CompactionFigures> compact_pool(const Pool& pool, const CompactionRequest& request,
                                       void (*progress)(std::uint64_t done, std::uint64_t total))
{
    CompactionFigures figures;
    figures.image_bytes_before = pool.facts().image_bytes;
    figures.file_bytes_before = pool.facts().file_bytes;
    auto old = open_sound_copy(pool, progress);
    if (!old && old.error().code == SP_E_POOL_CORRUPT) {
        return fail(SP_E_POOL_CORRUPT, 0,
                    "{}; a damaged pool is not compacted: `stillpoint check` lists all damage; restore the pool from a copy",
                    old.error().text());
    }
    if (!old) {
        return pass_on(old.error());
    }
    PoolParts& parts = (*old)->parts();
    count_before(parts, figures);
    auto image = std::make_unique<CompactedImage>(parts);
    if (auto placed = image->place_objects(); !placed) {
        return pass_on(placed.error());
    }
    figures.objects_after = image->objects();
    figures.object_bytes_after = image->object_bytes();
    const auto size = size_of_new(pool, *image, request);
    if (!size) {
        return pass_on(size.error());
    }
    auto made = create_new(pool, request, *size, parts.base());
    if (!made) {
        return pass_on(made.error());
    }
    figures.image_bytes_after = *size;
    figures.file_bytes_after = made->facts().file_bytes;
    if (auto ready = image->make(BreezePool::new_header(*made), made->facts().base_address); !ready) {
        return pass_on(ready.error());
    }
    if (auto written = image->write_to(*made); !written) {
        return pass_on(written.error());
    }
    image.reset();
    old->reset();  // The check needs the memory.
    if (auto checked = check_new(*made, figures.objects_after, progress); !checked) {
        return pass_on(checked.error());
    }
    if (auto published = made->medium().publish(); !published) {
        return pass_on(published.error());
    }
    return figures;
}

}  // namespace stillpoint::breeze

#include "engines/breeze/new_pool.hpp"

#include <algorithm>
#include <utility>

#include "engines/breeze/offline.hpp"
#include "media/open.hpp"

namespace stillpoint::breeze {

namespace {

constexpr std::uint64_t zones_for_one_more = 16;  ///< the room in a new pool: a sixteenth

}  // namespace

Result<std::unique_ptr<BreezePool>> open_to_copy(const Pool& pool, const char* what, CopyProgress progress)
{
    auto opened = open_sound_copy(pool, progress);
    if (!opened && opened.error().code == SP_E_POOL_CORRUPT) {
        return fail(
            SP_E_POOL_CORRUPT, 0,
            "{}; a damaged pool is not {}: `stillpoint check` lists all damage; restore the pool from a copy, or keep what is proved: `stillpoint "
            "salvage {} NEW`",
            opened.error().text(), what, pool.medium().path());
    }
    return opened;
}

CompactionFigures count_before(const Pool& pool, PoolParts& parts)
{
    CompactionFigures figures;
    figures.image_bytes_before = pool.facts().image_bytes;
    figures.file_bytes_before = pool.facts().file_bytes;
    for (std::uint64_t number = 0; number < parts.zones.count(); ++number) {
        parts.zones.visit_blocks(number, [&](std::uint64_t block) {
            if (parts.allocated(block)) {
                ++figures.objects_before;
                figures.object_bytes_before += parts.memory.object(block).size;
            }
        });
    }
    return figures;
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

Result<void> check_and_publish(Pool& made, std::uint64_t objects, CopyProgress progress)
{
    auto copy = open_sound_copy(made, progress);
    if (!copy) {
        return pass_on(copy.error());
    }
    if ((*copy)->figures().objects != objects) {
        return fail(SP_E_POOL_CORRUPT, 0, "{}: the new pool has {} objects in place of {}: its disk has lost some; choose another one",
                    made.medium().path(), (*copy)->figures().objects, objects);
    }
    copy->reset();
    return made.medium().publish();
}

}  // namespace stillpoint::breeze

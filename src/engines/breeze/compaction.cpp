#include "engines/breeze/compaction.hpp"

#include <memory>

#include "engines/breeze/new_pool.hpp"

namespace stillpoint::breeze {

Result<CompactionFigures> compact_pool(const Pool& pool, const CompactionRequest& request, CopyProgress progress)
{
    auto old = open_to_copy(pool, "compacted", progress);
    if (!old) {
        return pass_on(old.error());
    }
    CompactionFigures figures = count_before(pool, (*old)->parts());
    auto image = std::make_unique<CompactedImage>((*old)->parts());
    if (auto placed = image->place_objects(); !placed) {
        return pass_on(placed.error());
    }
    figures.objects_after = image->objects();
    figures.object_bytes_after = image->object_bytes();
    const auto size = size_of_new(pool, *image, request);
    if (!size) {
        return pass_on(size.error());
    }
    auto made = create_new(pool, request, *size, (*old)->parts().base());
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
    if (auto checked = check_and_publish(*made, figures.objects_after, progress); !checked) {
        return pass_on(checked.error());
    }
    return figures;
}

}  // namespace stillpoint::breeze

#include "engines/breeze/salvage.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/pool_part.hpp"
#include "engines/breeze/compacted_image.hpp"
#include "engines/breeze/new_pool.hpp"
#include "engines/breeze/offline.hpp"
#include "engines/breeze/sound_objects.hpp"

namespace stillpoint::breeze {

namespace {

/// Keeps what is told of other parts than objects, which are in the report one by one.
class OtherFindings final : public FindingsByPart {
public:
    std::vector<std::string> texts;

private:
    void tell(const Failure& failure, bool is_damage) override
    {
        if (is_damage && part() != PoolPart::objects) {
            texts.emplace_back(failure.text());
        }
    }
};

/// The smallest size with room for all, and no smaller than the pool was: the program needs room, too.
CompactionRequest with_size(const CompactionRequest& request, const Pool& pool, const CompactedImage& image)
{
    CompactionRequest made = request;
    made.size_bytes = std::max(pool.facts().image_bytes, image.image_bytes_min(1));
    return made;
}

}  // namespace

Result<ObjectSalvage> salvage_objects(const Pool& pool, const CompactionRequest& request, CopyProgress progress)
{
    OtherFindings findings;
    auto old = open_damaged_copy(pool, findings, progress);
    if (!old) {
        return pass_on(old.error());
    }
    PoolParts& parts = (*old)->parts();
    auto sound = std::make_unique<SoundObjects>(parts);
    if (auto found = sound->find(); !found) {
        return pass_on(found.error());
    }
    auto image = std::make_unique<CompactedImage>(parts, *sound);
    if (auto placed = image->place_objects(); !placed) {
        return pass_on(placed.error());
    }
    const CompactionRequest sized = with_size(request, pool, *image);
    const auto size = size_of_new(pool, *image, sized);
    if (!size) {
        return pass_on(size.error());
    }
    auto made = create_new(pool, sized, *size, parts.base());
    if (!made) {
        return pass_on(made.error());
    }
    if (auto ready = image->make(BreezePool::new_header(*made), made->facts().base_address); !ready) {
        return pass_on(ready.error());
    }
    if (auto written = image->write_to(*made); !written) {
        return pass_on(written.error());
    }
    ObjectSalvage report = std::move(sound->report());
    report.objects_kept = image->objects();
    report.bytes_kept = image->object_bytes();
    report.held = image->held();
    report.holder = image->holder();
    report.findings = std::move(findings.texts);
    for (auto& reference : report.cleared) {
        reference.object = image->place_of(reference.object_before);
    }
    for (auto& references : report.doubtful) {
        references.object = image->place_of(references.object_before);
    }
    image.reset();
    sound.reset();
    old->reset();  // The check needs the memory.
    if (auto checked = check_and_publish(*made, report.objects_kept + (report.holder != 0 ? 1 : 0), progress); !checked) {
        return pass_on(checked.error());
    }
    return report;
}

}  // namespace stillpoint::breeze

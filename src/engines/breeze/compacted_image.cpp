#include "engines/breeze/compacted_image.hpp"

#include <algorithm>
#include <cstring>

#include "core/formatted.hpp"
#include "engines/breeze/object_headers.hpp"
#include "stillpoint/breeze.h"

namespace stillpoint::breeze {

namespace {

constexpr std::uint64_t first_generation = 1;  ///< of a new pool's header
constexpr std::uint64_t transaction = 1;  ///< of log 0: the copying counts as one, so the pool does not pass for one that was never used

void set_word(std::byte* place, std::uint64_t value) noexcept { std::memcpy(place, &value, sizeof value); }

/// Writes [begin, end) of an image, whole pages. Errors: no_space, io.
Result<void> write_range(Medium& medium, std::uint64_t image_offset, const std::byte* image, std::uint64_t begin, std::uint64_t end)
{
    constexpr std::uint64_t at_once = 4 * mib;
    for (std::uint64_t at = begin; at < end; at += at_once) {
        const BlockWrite write{image_offset + at, image + at, std::min(at_once, end - at)};
        if (auto written = medium.write({&write, 1}); !written) {
            return written;
        }
    }
    return {};
}

}  // namespace

void CompactedImage::reach(std::uint64_t block)
{
    if (block != 0 && number_of(block) == 0) {
        number_of(block) = waits;
        found_.push_back(block);
    }
}

std::uint64_t CompactedImage::place(std::uint64_t object_bytes) noexcept
{
    const std::uint64_t granules = granules_for(object_bytes);
    if (granules > small_granules_max) {
        const std::uint64_t begin = zones_ * zone_bytes;
        zones_ += zones_for(granules);
        return begin;
    }
    const std::size_t size_class = size_class_of(granules);
    OpenZone& zone = open_zones_[size_class];
    if (zone.blocks_left == 0) {
        zone = {zones_ * zone_bytes, zone_granules / block_sizes[size_class]};
        ++zones_;
    }
    const std::uint64_t begin = zone.begin;
    zone.begin += block_sizes[size_class] * granule_bytes;
    --zone.blocks_left;
    return begin;
}

void CompactedImage::follow()
{
    const auto take_found = [this] {  // The first one is taken next.
        waiting_.insert(waiting_.end(), found_.rbegin(), found_.rend());
        found_.clear();
    };
    take_found();
    while (!waiting_.empty()) {
        const std::uint64_t block = waiting_.back();
        waiting_.pop_back();
        const std::uint64_t size = size_after(block);
        objects_.push_back({block, place(size)});
        number_of(block) = objects_.size();
        object_bytes_ += size;
        const std::byte* const object = from_.bytes_of(block);
        visit_pointers(block, [&](std::uint64_t offset, std::uint64_t, PointerKind kind) {
            if (kind == PointerKind::strong) {
                reach(target_of(word_at(object + offset)));
            }
        });
        take_found();
    }
}

Result<void> CompactedImage::place_objects()
{
    if (auto reserved = numbers_.reserve(from_.memory.bytes() / granule_bytes, "the places of a pool's objects"); !reserved) {
        return reserved;
    }
    reach(root());
    follow();
    for (std::uint64_t number = 0;
         (from_.types.has_pinned() || (conversion_ != nullptr && conversion_->has_pinned())) && number < from_.zones.count(); ++number) {
        from_.zones.visit_blocks(number, [&](std::uint64_t block) {
            const bool is_kept = sound_ != nullptr ? sound_->has(block) : from_.allocated(block);
            if (is_kept && (change_of(block) != nullptr ? *change_of(block)->to() : *from_.type_of(block)).is_pinned) {
                reach(block);
                follow();
            }
        });
    }
    if (sound_ != nullptr) {
        hold_the_rest();
    }
    return {};
}

void CompactedImage::hold_the_rest()
{
    // First those that no pointer leads to, and what they lead to; then of each ring that is left one object.
    for (const bool are_rings : {false, true}) {
        sound_->visit([&](std::uint64_t block) {
            if (number_of(block) == 0 && (are_rings || sound_->references(block) == 0)) {
                held_.push_back(block);
                reach(block);
                follow();
            }
        });
    }
    if (!held_.empty()) {
        holder_ = place(SalvageHolder::bytes_for(held_.size()));
    }
}

std::uint64_t CompactedImage::image_bytes_min(std::uint64_t more_zones) const noexcept
{
    const std::uint64_t wanted = zones_ + more_zones;
    std::uint64_t bytes = std::max<std::uint64_t>(wanted * zone_bytes, Pool::image_bytes_min);
    while (Geometry::of(bytes).zone_count < wanted) {
        bytes += zone_bytes;
    }
    return bytes;
}

std::uint64_t CompactedImage::place_inside(std::uint64_t block, std::uint64_t offset) noexcept
{
    const TypeChange* const change = change_of(block);
    const auto place = change != nullptr ? change->new_place_of(from_.bytes_of(block), from_.memory.object(block).size, offset)
                                         : std::optional(offset);
    if (!place) {
        conversion_->tell_of(from_, block, formatted("a pointer leads to its byte {}, which has no place in the new type", offset));
    }
    return place.value_or(0);
}

void CompactedImage::move_pointer(const std::byte* old_place, std::byte* new_place, PointerKind kind)
{
    const std::uint64_t pointer = word_at(old_place);
    if (pointer == 0) {
        return;
    }
    const bool is_weak = kind == PointerKind::weak;
    const std::uint64_t target = target_of(pointer);
    std::uint64_t to = new_place_of(target);
    if (is_weak && to != 0 && word_at(old_place + offsetof(nvm_weak, version)) != from_.memory.object(target).version) {
        to = 0;  // The object was freed, and another one lies there.
    }
    if (to == 0) {
        std::memset(new_place, 0, is_weak ? sizeof(nvm_weak) : sizeof pointer);
        return;
    }
    // Objects keep their versions, so a weak pointer does too.
    const std::uint64_t inside = pointer - from_.base() - target - object_header_bytes;
    set_word(new_place, base_ + to + object_header_bytes + place_inside(target, inside));
    if (is_weak) {
        std::memcpy(new_place + sizeof pointer, old_place + sizeof pointer, sizeof(nvm_weak) - sizeof pointer);
    }
    if (!is_weak) {
        ++object_at(to).counts;
    }
}

void CompactedImage::write_header(std::uint64_t to, std::uint32_t type, std::uint64_t version, std::uint64_t size) noexcept
{
    ObjectHeader& header = object_at(to);
    const std::uint64_t granules = granules_for(size);
    const std::uint64_t block_granules = granules > small_granules_max ? granules : block_sizes[size_class_of(granules)];
    header.head = head_of(key_, to, {BlockState::allocated, block_granules});
    header.owner = transaction;
    header.counts += std::uint64_t{type} << type_shift;  // Pointers that were moved before may have counted.
    header.version = version;
    header.size = size;
    header.generation = first_generation | header_check(key_, to, header) << header_check_shift;
}

void CompactedImage::make_holder(const SalvageHolder& type)
{
    const std::uint64_t to = geometry_.zones_offset + holder_;
    write_header(to, type.id(), sound_->next_version(), SalvageHolder::bytes_for(held_.size()));
    std::byte* const pointers = image_.data() + to + object_header_bytes;
    set_word(pointers, held_.size());
    for (std::size_t i = 0; i < held_.size(); ++i) {
        const std::uint64_t object = new_place_of(held_[i]);
        set_word(pointers + SalvageHolder::bytes_for(i), base_ + object + object_header_bytes);
        ++object_at(object).counts;
    }
}

void CompactedImage::move(const Moved& object)
{
    const ObjectHeader& old = from_.memory.object(object.from);
    const TypeChange* const change = change_of(object.from);
    const std::uint64_t size = size_after(object.from);
    const std::uint64_t to = geometry_.zones_offset + object.to;
    write_header(to, from_.type_of(object.from)->id, old.version, size);
    const std::byte* const from_bytes = from_.bytes_of(object.from);
    std::byte* const to_bytes = image_.data() + to + object_header_bytes;
    if (change == nullptr) {
        std::memcpy(to_bytes, from_bytes, size);
    } else {
        conversion_->convert(from_, object.from, *change, to_bytes);
    }
    visit_pointers(object.from, [&](std::uint64_t offset, std::uint64_t new_offset, PointerKind kind) {
        move_pointer(from_bytes + offset, to_bytes + new_offset, kind);
    });
}

Result<void> CompactedImage::make(const PoolHeader& header, std::uintptr_t base)
{
    geometry_ = Geometry::of(header.image_bytes);
    key_ = header.key;
    base_ = base;
    if (auto reserved = image_.reserve(geometry_.zones_offset + zones_ * zone_bytes, "the image of a new pool"); !reserved) {
        return reserved;
    }
    const PoolHeader& old = from_.memory.header();
    auto& made = *reinterpret_cast<PoolHeader*>(image_.data());
    made = header;
    made.versions_reserved = sound_ != nullptr ? sound_->next_version() + 1 : from_.versions_end.load();
    if (conversion_ != nullptr) {
        made.types_bytes = conversion_->records().size();
        std::memcpy(image_.data() + types_offset, conversion_->records().data(), made.types_bytes);
    } else if (sound_ != nullptr) {
        if (auto written = write_types(made); !written) {
            return written;
        }
    } else {
        made.types_bytes = old.types_bytes;
        std::memcpy(image_.data() + types_offset, &from_.memory.at<std::byte>(types_offset), made.types_bytes);
    }
    reinterpret_cast<LogHeader*>(image_.data() + geometry_.log_headers_offset)->finished = objects_.empty() ? 0 : transaction;
    for (const Moved& object : objects_) {
        move(object);
    }
    if (made.root = new_place_of(root()); made.root != 0) {
        ++object_at(made.root).counts;
    }
    return {};
}

Result<void> CompactedImage::write_types(PoolHeader& made)
{
    std::vector<std::byte> records = from_.types.whole_records();
    if (!held_.empty()) {
        const auto holder = SalvageHolder::make();
        if (!holder) {
            return pass_on(holder.error());
        }
        const std::vector<std::byte>& record = holder->record();
        if (from_.types.find(holder->id()) == nullptr) {
            records.insert(records.end(), record.begin(), record.end());
        }
        make_holder(*holder);
    }
    if (records.size() > types_bytes_max) {
        return fail(SP_E_POOL_FULL, 0, "{}: no room for the description of one more type, whose object holds what nothing else leads to",
                    from_.memory.medium().path());
    }
    made.types_bytes = records.size();
    std::copy(records.begin(), records.end(), image_.data() + types_offset);  // A pool without types has none.
    return {};
}

Result<void> CompactedImage::write_to(Pool& pool) const
{
    Medium& medium = pool.medium();
    const std::uint64_t offset = pool.segments().front().first_file_page * page_bytes;
    if (auto written = write_range(medium, offset, image_.data(), 0, geometry_.logs_offset); !written) {
        return written;
    }
    const std::uint64_t zones_end = geometry_.zones_offset + zones_ * zone_bytes;
    if (auto written = write_range(medium, offset, image_.data(), geometry_.zones_offset, zones_end); !written) {
        return written;
    }
    return medium.sync();
}

}  // namespace stillpoint::breeze

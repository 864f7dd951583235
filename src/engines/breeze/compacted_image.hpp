#pragma once
// The image of a new pool with the objects of another one that a program can reach: those of a size beside each other, in the order in
// which they are reached. Of a damaged pool: with all sound objects.

#include <array>
#include <cstdint>
#include <vector>

#include "core/result.hpp"
#include "engines/breeze/conversion_plan.hpp"
#include "engines/breeze/pool_parts.hpp"
#include "engines/breeze/salvage_holder.hpp"
#include "engines/breeze/sound_objects.hpp"
#include "engines/breeze/zones.hpp"
#include "os/reserved_array.hpp"
#include "pool/pool.hpp"

namespace stillpoint::breeze {

class CompactedImage {
public:
    /// `from` outlives it, and so does `conversion`: how objects change meanwhile; nullptr: they do not. The pool has no damage, no
    /// transaction runs, and its counts are applied.
    explicit CompactedImage(PoolParts& from, ConversionPlan* conversion = nullptr) noexcept : from_(from), conversion_(conversion) {}

    /// For a salvage: `from` is a damaged pool that was opened for it. `sound` outlives the image.
    CompactedImage(PoolParts& from, SoundObjects& sound) noexcept : from_(from), conversion_(nullptr), sound_(&sound) {}

    /// Finds the objects that the root and pinned ones lead to, in a damaged pool all sound ones, and gives each a place.
    /// Errors: no_memory.
    [[nodiscard]] Result<void> place_objects();
    /// The size of the smallest image with room for the objects, and for as many zones more.
    [[nodiscard]] std::uint64_t image_bytes_min(std::uint64_t more_zones) const noexcept;
    /// Zones that the objects take.
    [[nodiscard]] std::uint64_t zones() const noexcept { return zones_; }
    [[nodiscard]] std::uint64_t objects() const noexcept { return objects_.size(); }
    [[nodiscard]] std::uint64_t object_bytes() const noexcept { return object_bytes_; }
    /// Objects of a damaged pool that only the holder leads to: see SalvageHolder.
    [[nodiscard]] std::uint64_t held() const noexcept { return held_.size(); }
    /// After make(): where in the new image the header of an object lies that lay at that place; 0: it is not kept.
    [[nodiscard]] std::uint64_t place_of(std::uint64_t block) noexcept { return new_place_of(block); }
    [[nodiscard]] std::uint64_t holder() const noexcept { return held_.empty() ? 0 : geometry_.zones_offset + holder_; }

    /// Makes the image for a pool that has this header and lies at `base`. Errors: no_memory.
    [[nodiscard]] Result<void> make(const PoolHeader& header, std::uintptr_t base);
    /// Writes it to a new pool, whose other pages are zero; durable on return. Errors: no_space, io.
    [[nodiscard]] Result<void> write_to(Pool& pool) const;

private:
    struct Moved {
        std::uint64_t from;  ///< the header's offset in the old image
        std::uint64_t to;  ///< and in the new one, from the first zone on
    };
    /// A zone whose blocks have one size, and are given out in their order.
    struct OpenZone {
        std::uint64_t begin = 0;
        std::uint64_t blocks_left = 0;
    };
    static constexpr std::uint64_t waits = UINT64_MAX;

    void reach(std::uint64_t block);
    /// Places everything that waits, depth first.
    void follow();
    [[nodiscard]] std::uint64_t place(std::uint64_t object_bytes) noexcept;
    [[nodiscard]] std::uint64_t& number_of(std::uint64_t block) noexcept { return numbers_[block / granule_bytes]; }
    [[nodiscard]] ObjectHeader& object_at(std::uint64_t offset) noexcept
    {
        return *reinterpret_cast<ObjectHeader*>(image_.data() + offset);
    }
    void hold_the_rest();
    void move(const Moved& object);
    void make_holder(const SalvageHolder& type);
    /// Errors: pool_full.
    [[nodiscard]] Result<void> write_types(PoolHeader& made);
    void write_header(std::uint64_t to, std::uint32_t type, std::uint64_t version, std::uint64_t size) noexcept;
    /// The object that is kept and that a pointer leads into; 0: none.
    [[nodiscard]] std::uint64_t target_of(std::uint64_t pointer) const noexcept
    {
        return sound_ != nullptr ? sound_->target_of(pointer) : from_.target_of(pointer);
    }
    [[nodiscard]] std::uint64_t root() const noexcept { return sound_ != nullptr ? sound_->root() : load_word(from_.memory.header().root); }
    void move_pointer(const std::byte* old_place, std::byte* new_place, PointerKind kind);
    /// nullptr: the object stays as it is.
    [[nodiscard]] const TypeChange* change_of(std::uint64_t block) const noexcept
    {
        return conversion_ != nullptr ? conversion_->change_of(*from_.type_of(block)) : nullptr;
    }
    /// Calls visit(old offset, new offset, kind) for each pointer of the object that is kept.
    template <class Visit>
    void visit_pointers(std::uint64_t block, Visit&& visit) const
    {
        const std::byte* const object = from_.bytes_of(block);
        const std::uint64_t size = from_.memory.object(block).size;
        if (const TypeChange* const change = change_of(block); change != nullptr) {
            change->visit_pointers(object, size, visit);
            return;
        }
        from_.type_of(block)->visit_pointers(object, size,
                                             [&](std::uint64_t offset, const PointerRun& run) { visit(offset, offset, run.kind); });
    }
    [[nodiscard]] std::uint64_t size_after(std::uint64_t block) const noexcept
    {
        const std::uint64_t size = from_.memory.object(block).size;
        const TypeChange* const change = change_of(block);
        return change != nullptr ? change->size_after(size) : size;
    }
    [[nodiscard]] std::uint64_t place_inside(std::uint64_t block, std::uint64_t offset) noexcept;
    /// Where the object of that block lies in the new image; 0: it has not moved.
    [[nodiscard]] std::uint64_t new_place_of(std::uint64_t block) noexcept
    {
        return block == 0 || number_of(block) == 0 ? 0 : geometry_.zones_offset + objects_[number_of(block) - 1].to;
    }

    PoolParts& from_;
    ConversionPlan* conversion_;
    SoundObjects* sound_ = nullptr;
    std::vector<std::uint64_t> held_;
    std::uint64_t holder_ = 0;  ///< in the new image, from the first zone on
    std::vector<Moved> objects_;
    std::uint64_t object_bytes_ = 0;
    os::ReservedArray<std::uint64_t> numbers_;  ///< places in objects_ + 1, by granule of the old image; 0: not reached
    std::vector<std::uint64_t> waiting_;
    std::vector<std::uint64_t> found_;  ///< that one object leads to
    std::array<OpenZone, block_sizes.size()> open_zones_{};
    std::uint64_t zones_ = 0;

    os::ReservedArray<std::byte> image_;  ///< up to the last zone that has objects
    Geometry geometry_{};
    std::uint64_t key_ = 0;
    std::uintptr_t base_ = 0;
};

}  // namespace stillpoint::breeze

#include "engines/respct/image_memory.hpp"

#include <algorithm>

namespace stillpoint::respct {

Result<void> ImageMemory::map(const Pool& pool, std::uint64_t heap_offset)
{
    const PoolFacts& facts = pool.facts();
    heap_offset_ = heap_offset;
    in_place_ = pool.medium().byte_addressable();
    const std::uint64_t private_bytes = in_place_ ? std::min(heap_offset, facts.image_bytes) : facts.image_bytes;
    if (auto mapped = memory_.map(facts.base_address, private_bytes, facts.image_bytes_max, Shadow::Pages::huge); !mapped) {
        return mapped;
    }
    if (!in_place_) {
        return {};
    }
    if (auto mapped = map_segments(pool, heap_offset, &Medium::map_copy_at); !mapped) {
        return mapped;
    }
    memory_.publish(facts.image_bytes);
    return {};
}

Result<void> ImageMemory::share(const Pool& pool)
{
    auto mapped = map_segments(pool, heap_offset_, &Medium::map_at);
    shared_ = mapped.has_value();
    return mapped;
}

Result<void> ImageMemory::map_segments(const Pool& pool, std::uint64_t from_byte, MapAt map_at)
{
    for (const Segment& segment : pool.segments()) {
        const std::uint64_t begin = std::max(segment.first_image_page, from_byte / page_bytes);
        const std::uint64_t end = segment.first_image_page + segment.image_pages;
        if (begin >= end) {
            continue;
        }
        const std::uint64_t file_page = segment.first_file_page + (begin - segment.first_image_page);
        std::byte* const address = memory_.base() + begin * page_bytes;
        if (auto mapped = (pool.medium().*map_at)(address, file_page * page_bytes, (end - begin) * page_bytes); !mapped) {
            return mapped;
        }
    }
    return {};
}

Result<void> ImageMemory::extend(const Pool& pool, std::uint64_t image_bytes)
{
    const Result<void> done = in_place_ ? map_segments(pool, std::max(heap_offset_, memory_.bytes()),
                                                       shared_ ? &Medium::map_at : &Medium::map_copy_at)
                                        : memory_.make_accessible(image_bytes);
    if (done) {
        memory_.publish(image_bytes);
    }
    return done;
}

void ImageMemory::make_private_after_fork(const Pool& pool) noexcept
{
    if (in_place_) {
        static_cast<void>(map_segments(pool, heap_offset_, &Medium::map_copy_at));
    }
}

}  // namespace stillpoint::respct

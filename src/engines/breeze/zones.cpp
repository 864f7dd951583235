#include "engines/breeze/zones.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>

#include "core/canary.hpp"
#include "engines/breeze/object_headers.hpp"
#include "os/own_mappings.hpp"

namespace stillpoint::breeze {

namespace {

constexpr unsigned kind_shift = 62;
constexpr std::uint64_t value_mask = (std::uint64_t{1} << kind_shift) - 1;
constexpr std::uint64_t refill_bytes = 32 * kib;

}  // namespace

std::size_t size_class_of(std::uint64_t granules) noexcept
{
    return static_cast<std::size_t>(std::ranges::lower_bound(block_sizes, granules) - block_sizes.begin());
}

Result<void> Zones::prepare(PoolMemory& memory, const Geometry& geometry, std::uint64_t key)
{
    memory_ = &memory;
    geometry_ = geometry;
    key_ = key;
    if (auto reserved = zones_.reserve(count(), "the zones of a pool"); !reserved) {
        return reserved;
    }
    if (auto reserved = free_counts_.reserve(count(), "the zones of a pool"); !reserved) {
        return reserved;
    }
    if (auto reserved = links_.reserve(count(), "the zones of a pool"); !reserved) {
        return reserved;
    }
    if (auto reserved = unasked_from_.reserve(count(), "the zones of a pool"); !reserved) {
        return reserved;
    }
    return bits_.reserve(count() * words_of_zone, "the free blocks of a pool");
}

Zones::Zone Zones::zone(std::uint64_t number) const noexcept
{
    const std::uint64_t word = zones_[number].load(std::memory_order_acquire);
    return {static_cast<Kind>(word >> kind_shift), word & value_mask};
}

void Zones::set_zone(std::uint64_t number, Zone zone) noexcept
{
    zones_[number].store(static_cast<std::uint64_t>(zone.kind) << kind_shift | zone.value, std::memory_order_release);
}

std::uint64_t Zones::block_of(std::uint64_t offset) const noexcept
{
    if (offset < geometry_.zones_offset) {
        return 0;
    }
    std::uint64_t number = (offset - geometry_.zones_offset) / zone_bytes;
    if (number >= count()) {
        return 0;
    }
    Zone found = zone(number);
    if (found.kind == Kind::rest) {
        number = found.value;
        found = zone(number);
    }
    const std::uint64_t begin = offset_of(number);
    if (found.kind == Kind::large) {
        return begin;
    }
    if (found.kind != Kind::small) {
        return 0;
    }
    const std::uint64_t block = (offset - begin) / granule_bytes / found.value;
    return block < zone_granules / found.value ? begin + block * found.value * granule_bytes : 0;
}

std::uint64_t Zones::bytes_of_block(std::uint64_t offset) const noexcept
{
    return zone((offset - geometry_.zones_offset) / zone_bytes).value * granule_bytes;
}

std::uint64_t Zones::allocate(BlockCache& cache, std::uint64_t object_bytes, bool& is_large) noexcept
{
    for (;;) {
        const std::uint64_t block = take(cache, object_bytes, is_large);
        if (block != 0 || keeps_bytes_ == 0) {
            return block;
        }
        const std::lock_guard hold(lock_);
        if (!make_oldest_usable()) {
            return 0;
        }
    }
}

std::uint64_t Zones::take(BlockCache& cache, std::uint64_t object_bytes, bool& is_large) noexcept
{
    is_large = false;
    if (object_bytes > count() * zone_bytes) {
        return 0;
    }
    const std::uint64_t granules = granules_for(object_bytes);
    if (granules > small_granules_max) {
        is_large = true;
        const std::lock_guard hold(lock_);
        const std::uint64_t zones = zones_for(granules);
        const std::uint64_t first = take_blank(zones);
        if (first == none) {
            return 0;
        }
        for (std::uint64_t i = 1; i < zones; ++i) {
            set_zone(first + i, {Kind::rest, first});
        }
        set_zone(first, {Kind::large, granules});
        bytes_in_use_.fetch_add(zones * zone_bytes, std::memory_order_relaxed);
        blocks_in_use_.fetch_add(1, std::memory_order_relaxed);
        return offset_of(first);
    }
    const std::size_t size_class = size_class_of(granules);
    if (cache.counts[size_class] == 0 && !refill(cache, size_class)) {
        return 0;
    }
    bytes_in_use_.fetch_add(block_sizes[size_class] * granule_bytes, std::memory_order_relaxed);
    blocks_in_use_.fetch_add(1, std::memory_order_relaxed);
    return cache.blocks[size_class][--cache.counts[size_class]];
}

void Zones::list(std::uint64_t number, std::uint64_t granules) noexcept
{
    std::uint32_t& first = with_free_[size_class_of(granules)];
    const auto own = static_cast<std::uint32_t>(number + 1);
    links_[number] = {first, 0};
    if (first != 0) {
        links_[first - 1].previous = own;
    }
    first = own;
}

void Zones::unlist(std::uint64_t number, std::uint64_t granules) noexcept
{
    const Link link = links_[number];
    if (link.next != 0) {
        links_[link.next - 1].previous = link.previous;
    }
    if (link.previous != 0) {
        links_[link.previous - 1].next = link.next;
    } else {
        with_free_[size_class_of(granules)] = link.next;
    }
}

bool Zones::refill(BlockCache& cache, std::size_t size_class) noexcept
{
    const std::uint64_t granules = block_sizes[size_class];
    const std::uint64_t wanted = std::clamp<std::uint64_t>(refill_bytes / (granules * granule_bytes), 1, BlockCache::blocks_max);
    std::unique_lock hold(lock_);
    if (with_free_[size_class] == 0) {
        const std::uint64_t blank = take_blank(1);
        if (blank == none) {
            return false;
        }
        carve(blank, granules);
        list(blank, granules);
    }
    const std::uint64_t number = with_free_[size_class] - 1;
    std::uint64_t* const bits = free_bits(number);
    std::uint32_t& in_cache = cache.counts[size_class];
    for (std::uint64_t word = 0; word < words_of_zone && in_cache < wanted; ++word) {
        while (bits[word] != 0 && in_cache < wanted) {
            const auto block = word * 64 + static_cast<std::uint64_t>(std::countr_zero(bits[word]));
            bits[word] &= bits[word] - 1;
            --free_counts_[number];
            cache.blocks[size_class][in_cache++] = offset_of(number) + block * granules * granule_bytes;
        }
    }
    if (free_counts_[number] == 0) {
        unlist(number, granules);
    }
    const std::uint64_t end = cache.blocks[size_class][in_cache - 1] - offset_of(number) + granules * granule_bytes;
    const std::uint64_t unasked = unasked_from_[number];
    const bool asks = unasked != 0 && end > unasked;
    if (asks) {
        unasked_from_[number] = end < zone_bytes ? static_cast<std::uint32_t>(end) : 0;
    }
    hold.unlock();
    if (asks) {  // One call for all their pages costs less than a fault for each.
        os::populate_own(&memory_->at<std::byte>(offset_of(number) + unasked), end - unasked);
    }
    std::reverse(cache.blocks[size_class].begin(), cache.blocks[size_class].begin() + in_cache);  // In the order of their addresses.
    return true;
}

std::uint64_t Zones::take_blank(std::uint64_t zones) noexcept
{
    for (int pass = 0; pass < 2; ++pass) {
        std::uint64_t run = 0;
        for (std::uint64_t number = pass == 0 ? next_blank_ : 0; number < count(); ++number) {
            run = zone(number).kind == Kind::blank ? run + 1 : 0;
            if (run == zones) {
                next_blank_ = number + 1;
                return number + 1 - zones;
            }
        }
    }
    return none;
}

void Zones::carve(std::uint64_t number, std::uint64_t granules) noexcept
{
    const std::uint64_t begin = offset_of(number);
    const std::uint64_t blocks = zone_granules / granules;
    std::uint64_t& head = memory_->object(begin).head;
    if (load_word(head) != 0) {  // The zone has been used: bytes of old objects must not pass for damaged headers.
        for (std::uint64_t block = 1; block < blocks; ++block) {
            std::uint64_t& other = memory_->object(begin + block * granules * granule_bytes).head;
            store_word(other, 0);  // Also where it is zero: that may be a store that was never written back.
            memory_->write_back(&other, sizeof other);
        }
        memory_->fence();
        unasked_from_[number] = 0;
    } else {
        unasked_from_[number] = page_bytes;
    }
    memory_->persist_word(head, head_of(key_, begin, {BlockState::free, granules}));
    std::uint64_t* const bits = free_bits(number);
    std::fill_n(bits, words_of_zone, 0);
    for (std::uint64_t block = 0; block < blocks; ++block) {
        bits[block / 64] |= std::uint64_t{1} << block % 64;
    }
    free_counts_[number] = static_cast<std::uint32_t>(blocks);
    set_zone(number, {Kind::small, granules});
}

void Zones::make_blank(std::uint64_t number) noexcept
{
    set_zone(number, {Kind::blank, 0});
    std::fill_n(free_bits(number), words_of_zone, 0);
    free_counts_[number] = 0;
    next_blank_ = std::min(next_blank_, number);
}

void Zones::clear_large(std::uint64_t first_zone, std::uint64_t zones) noexcept
{
    for (std::uint64_t i = zones; i-- > 0;) {  // The first one last: until then it says how many there are.
        if (i == 0) {
            memory_->fence();
        }
        const std::uint64_t begin = offset_of(first_zone + i);
        std::uint64_t& head = memory_->object(begin).head;
        store_word(head, head_of(key_, begin, {BlockState::free, zone_granules}));
        memory_->write_back(&head, sizeof head);
    }
    memory_->fence();
}

Result<void> Zones::keep_freed(std::uint64_t bytes)
{
    keeps_bytes_ = bytes;
    return kept_.reserve(count() * zone_granules, "freed blocks that are kept");
}

void Zones::release(std::uint64_t offset) noexcept
{
    const std::lock_guard hold(lock_);
    const Zone found = zone((offset - geometry_.zones_offset) / zone_bytes);
    const std::uint64_t bytes = found.kind == Kind::large ? zones_for(found.value) * zone_bytes : found.value * granule_bytes;
    blocks_in_use_.fetch_sub(1, std::memory_order_relaxed);
    bytes_in_use_.fetch_sub(bytes, std::memory_order_relaxed);
    if (keeps_bytes_ != 0) {
        keep(offset);
    } else {
        make_usable(offset);
    }
}

void Zones::keep(std::uint64_t offset) noexcept
{
    const std::uint64_t bytes = bytes_of_block(offset);
    std::memset(&memory_->at<std::byte>(offset + object_header_bytes), static_cast<int>(freed_byte), bytes - object_header_bytes);
    kept_[(kept_begin_ + kept_count_++) % kept_.capacity()] = offset;
    kept_bytes_ += bytes;
    while (kept_bytes_ > keeps_bytes_) {
        make_oldest_usable();
    }
}

bool Zones::make_oldest_usable() noexcept
{
    if (kept_count_ == 0) {
        return false;
    }
    const std::uint64_t offset = kept_[kept_begin_];
    kept_begin_ = (kept_begin_ + 1) % kept_.capacity();
    --kept_count_;
    kept_bytes_ -= bytes_of_block(offset);
    make_usable(offset);
    return true;
}

void Zones::make_usable(std::uint64_t offset) noexcept
{
    const std::uint64_t number = (offset - geometry_.zones_offset) / zone_bytes;
    const Zone found = zone(number);
    if (found.kind == Kind::large) {
        const std::uint64_t zones = zones_for(found.value);
        if (!is_removed(Canary::large_object_zones)) {
            clear_large(number, zones);
        }
        for (std::uint64_t i = 0; i < zones; ++i) {
            make_blank(number + i);
        }
        return;
    }
    const std::uint64_t block = (offset - offset_of(number)) / granule_bytes / found.value;
    free_bits(number)[block / 64] |= std::uint64_t{1} << block % 64;
    if (++free_counts_[number] == 1) {
        list(number, found.value);
    }
    if (free_counts_[number] == zone_granules / found.value) {
        unlist(number, found.value);
        make_blank(number);
    }
}

void Zones::finish_scan() noexcept
{
    std::uint64_t in_use = 0;
    std::uint64_t blocks_in_use = 0;
    for (std::uint64_t number = 0; number < count(); ++number) {
        const Zone found = zone(number);
        if (found.kind == Kind::large) {
            in_use += zones_for(found.value) * zone_bytes;
            ++blocks_in_use;
        }
        if (found.kind != Kind::small) {
            continue;
        }
        std::uint32_t free_blocks = 0;
        for (std::uint64_t word = 0; word < words_of_zone; ++word) {
            free_blocks += static_cast<std::uint32_t>(std::popcount(free_bits(number)[word]));
        }
        free_counts_[number] = free_blocks;
        const std::uint64_t blocks = zone_granules / found.value;
        if (free_blocks == blocks) {
            make_blank(number);
            continue;
        }
        in_use += (blocks - free_blocks) * found.value * granule_bytes;
        blocks_in_use += blocks - free_blocks;
        if (free_blocks != 0) {
            list(number, found.value);
        }
    }
    next_blank_ = 0;
    bytes_in_use_.store(in_use, std::memory_order_relaxed);
    blocks_in_use_.store(blocks_in_use, std::memory_order_relaxed);
}

}  // namespace stillpoint::breeze

#include "engines/breeze/pool_memory.hpp"

#include <algorithm>
#include <cstring>

#include "pool/superblock_layout.hpp"
#include "pool/uuid.hpp"

namespace stillpoint::breeze {

namespace {

/// An address in the upper half of the window, where pools that are made beside others lie.
Result<std::uintptr_t> random_place(std::uint64_t size_bytes)
{
    const std::uint64_t half = window_bytes / 2;
    if (size_bytes > half) {
        return fail(SP_E_WINDOW_TAKEN, 0, "a pool of {} MiB can only lie at the beginning of the window of durable addresses",
                    size_bytes / mib);
    }
    const auto uuid = draw_uuid();
    if (!uuid) {
        return pass_on(uuid.error());
    }
    std::uint64_t random = 0;
    std::memcpy(&random, uuid->data() + 8, sizeof random);
    const std::uint64_t places = (half - size_bytes) / layout::base_address_alignment + 1;
    return window_base + half + random % places * layout::base_address_alignment;
}

}  // namespace

Result<void> PoolMemory::map_at(Pool& pool, std::uintptr_t base)
{
    const std::uint64_t bytes = pool.facts().image_bytes;
    if (auto reserved = addresses_.map(base, is_journaled_ ? bytes : 0, bytes, Shadow::Pages::huge); !reserved) {
        return reserved;
    }
    if (is_journaled_) {
        journal_.place_at(addresses_.base());
    }
    for (const Segment& segment : pool.segments()) {
        if (is_journaled_) {
            break;
        }
        std::byte* const address = addresses_.base() + segment.first_image_page * page_bytes;
        auto mapped = pool.medium().map_at(address, segment.first_file_page * page_bytes, segment.image_pages * page_bytes);
        if (!mapped) {
            addresses_.unmap();
            return mapped;
        }
    }
    medium_ = &pool.medium();
    base_ = addresses_.base();
    file_offset_ = pool.segments().front().first_file_page * page_bytes;
    bytes_ = bytes;
    return {};
}

void PoolMemory::store_noted(std::uint64_t offset, const void* data, std::uint64_t size_bytes) const noexcept
{
    auto* const words = &at<std::uint64_t>(offset);  // Which other threads may read: the number of the last transaction.
    for (std::uint64_t i = 0; i < size_bytes / sizeof *words; ++i) {
        std::uint64_t word = 0;
        std::memcpy(&word, static_cast<const std::byte*>(data) + i * sizeof word, sizeof word);
        store_word(words[i], word);
    }
    write_back(words, size_bytes);
}

Result<void> PoolMemory::read_journaled(Pool& pool, std::uint64_t round_bytes)
{
    is_journaled_ = true;
    return journal_.read(pool, round_bytes);
}

Result<PoolHeader> PoolMemory::read_header(const Pool& pool) const
{
    PoolHeader header;
    if (is_journaled_) {
        std::memcpy(&header, journal_.content(), sizeof header);
        return header;
    }
    const std::uint64_t place = pool.segments().front().first_file_page * page_bytes;
    if (auto read = pool.medium().read(place, std::as_writable_bytes(std::span(&header, 1))); !read) {
        return pass_on(read.error());
    }
    return header;
}

Result<void> PoolMemory::map(Pool& pool, Place place)
{
    constexpr unsigned attempts = 64;
    auto mapped = map_at(pool, place.base);
    for (unsigned attempt = 0; attempt < attempts && !mapped && mapped.error().code == SP_E_WINDOW_TAKEN && place.or_another; ++attempt) {
        const auto other = random_place(pool.facts().image_bytes);
        if (!other) {
            return pass_on(other.error());
        }
        mapped = map_at(pool, *other);
    }
    return mapped;
}

void PoolMemory::write_back(const void* address, std::uint64_t size_bytes) const noexcept
{
    LinesToWriteBack(*this).add(address, size_bytes);
}

void LinesToWriteBack::add(const void* address, std::uint64_t size_bytes) noexcept
{
    if (size_bytes == 0) {
        return;
    }
    constexpr std::uint64_t word_bytes = sizeof(std::uint64_t);
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    const std::uintptr_t end = begin + size_bytes;
    for (std::uintptr_t line = begin / cache_line_bytes * cache_line_bytes; line < end; line += cache_line_bytes) {
        const std::uint64_t first = begin > line ? (begin - line) / word_bytes : 0;
        const std::uint64_t last = (std::min(end - line, cache_line_bytes) - 1) / word_bytes;
        const auto words = static_cast<std::uint8_t>((2u << last) - (1u << first));
        if (count_ != 0 && lines_[count_ - 1] == line) {
            stored_[count_ - 1].words |= words;
            continue;
        }
        if (count_ == lines_max) {
            flush();
        }
        lines_[count_] = line;
        stored_[count_++] = {line, words};
    }
}

}  // namespace stillpoint::breeze

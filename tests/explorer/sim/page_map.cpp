#include "sim/page_map.hpp"

#include <algorithm>
#include <cstring>

#include "arch/checksum.hpp"

namespace stillpoint::sim {

namespace {

const std::array<std::byte, page_bytes> zero_page{};

std::uint64_t digest_of(std::uint64_t page_index, const std::byte* bytes) noexcept
{
    if (std::memcmp(bytes, zero_page.data(), page_bytes) == 0) {
        return 1;  // As a page that was never written: it adds nothing.
    }
    return checksum64(bytes, page_bytes, page_index) | 2;
}

}  // namespace

void PageMap::resize(std::uint64_t size_bytes)
{
    const std::uint64_t pages = round_up(size_bytes, page_bytes) / page_bytes;
    const std::uint64_t pages_before = round_up(size_bytes_, page_bytes) / page_bytes;
    const std::uint64_t tail = size_bytes % page_bytes;
    if (size_bytes < size_bytes_ && tail != 0) {
        std::memset(writable(pages - 1) + tail, 0, page_bytes - tail);
    }
    const std::uint64_t chunks = (pages + pages_in_chunk - 1) / pages_in_chunk;
    for (std::uint64_t page = pages; page < std::min(pages_before, chunks * pages_in_chunk); ++page) {
        std::memset(writable(page), 0, page_bytes);
    }
    chunks_.resize(static_cast<std::size_t>(chunks));
    size_bytes_ = size_bytes;
}

std::byte* PageMap::writable(std::uint64_t page_index)
{
    std::shared_ptr<Chunk>& chunk = chunks_[static_cast<std::size_t>(page_index / pages_in_chunk)];
    if (chunk == nullptr) {
        chunk = std::make_shared<Chunk>();
    } else if (chunk.use_count() != 1) {
        chunk = std::make_shared<Chunk>(*chunk);
    }
    chunk->digest = 0;
    Slot& slot = chunk->slots[page_index % pages_in_chunk];
    if (slot.page == nullptr) {
        slot.page = std::make_shared<Page>(zero_page);
    } else if (slot.page.use_count() != 1) {
        slot.page = std::make_shared<Page>(*slot.page);
    }
    slot.digest = 0;
    return slot.page->data();
}

const std::byte* PageMap::readable(std::uint64_t page_index) const noexcept
{
    const Chunk* const chunk = chunks_[static_cast<std::size_t>(page_index / pages_in_chunk)].get();
    const Page* const page = chunk != nullptr ? chunk->slots[page_index % pages_in_chunk].page.get() : nullptr;
    return page != nullptr ? page->data() : zero_page.data();
}

void PageMap::write(std::uint64_t offset, const void* data, std::size_t size)
{
    const auto* from = static_cast<const std::byte*>(data);
    while (size > 0) {
        const std::size_t inside = offset % page_bytes;
        const std::size_t piece = std::min(size, page_bytes - inside);
        std::memcpy(writable(offset / page_bytes) + inside, from, piece);
        offset += piece;
        from += piece;
        size -= piece;
    }
}

void PageMap::read(std::uint64_t offset, void* destination, std::size_t size) const noexcept
{
    auto* to = static_cast<std::byte*>(destination);
    while (size > 0) {
        const std::size_t inside = offset % page_bytes;
        const std::size_t piece = std::min(size, page_bytes - inside);
        std::memcpy(to, readable(offset / page_bytes) + inside, piece);
        offset += piece;
        to += piece;
        size -= piece;
    }
}

bool PageMap::equals(std::uint64_t offset, const void* data, std::size_t size) const noexcept
{
    const auto* bytes = static_cast<const std::byte*>(data);
    while (size > 0) {
        const std::size_t inside = offset % page_bytes;
        const std::size_t piece = std::min(size, page_bytes - inside);
        if (std::memcmp(readable(offset / page_bytes) + inside, bytes, piece) != 0) {
            return false;
        }
        offset += piece;
        bytes += piece;
        size -= piece;
    }
    return true;
}

std::uint64_t PageMap::digest() const noexcept
{
    std::uint64_t sum = mix64(size_bytes_, 0x53494d);
    for (std::size_t i = 0; i < chunks_.size(); ++i) {
        const Chunk* const chunk = chunks_[i].get();
        if (chunk == nullptr) {
            continue;
        }
        if (chunk->digest == 0) {
            std::uint64_t of_chunk = 0;
            for (std::size_t j = 0; j < pages_in_chunk; ++j) {
                const Slot& slot = chunk->slots[j];
                if (slot.page != nullptr && slot.digest == 0) {
                    slot.digest = digest_of(i * pages_in_chunk + j, slot.page->data());
                }
                of_chunk += slot.page != nullptr && slot.digest != 1 ? mix64(j, slot.digest) : 0;
            }
            chunk->digest = of_chunk | 1;
        }
        sum += chunk->digest != 1 ? mix64(i, chunk->digest) : 0;
    }
    return sum;
}

}  // namespace stillpoint::sim

#include "media/sim/page_map.hpp"

#include <algorithm>
#include <cstring>

#include "core/checksum.hpp"

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
    const std::uint64_t tail = size_bytes % page_bytes;
    const bool cut_inside_a_page = size_bytes < size_bytes_ && tail != 0;
    slots_.resize(static_cast<std::size_t>(pages));
    size_bytes_ = size_bytes;
    if (cut_inside_a_page && slots_.back().page != nullptr) {
        std::memset(writable(pages - 1) + tail, 0, page_bytes - tail);
    }
}

std::byte* PageMap::writable(std::uint64_t page_index)
{
    Slot& slot = slots_[static_cast<std::size_t>(page_index)];
    if (slot.page == nullptr) {
        slot.page = std::make_shared<Page>(zero_page);
    } else if (slot.page.use_count() != 1) {
        slot.page = std::make_shared<Page>(*slot.page);
    }
    slot.digest = 0;
    return slot.page->data();
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
        const Slot& slot = slots_[static_cast<std::size_t>(offset / page_bytes)];
        const Page& page = slot.page != nullptr ? *slot.page : zero_page;
        std::memcpy(to, page.data() + inside, piece);
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
        const Slot& slot = slots_[static_cast<std::size_t>(offset / page_bytes)];
        const Page& page = slot.page != nullptr ? *slot.page : zero_page;
        if (std::memcmp(page.data() + inside, bytes, piece) != 0) {
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
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        const Slot& slot = slots_[i];
        if (slot.page == nullptr) {
            continue;
        }
        if (slot.digest == 0) {
            slot.digest = digest_of(i, slot.page->data());
        }
        if (slot.digest != 1) {
            sum += mix64(i, slot.digest);
        }
    }
    return sum;
}

}  // namespace stillpoint::sim

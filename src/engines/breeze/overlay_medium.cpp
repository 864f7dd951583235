#include "engines/breeze/overlay_medium.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <vector>

namespace stillpoint::breeze {

Result<void> OverlayMedium::resize(std::uint64_t size)
{
    if (size == size_bytes()) {
        return {};
    }
    return fail(SP_E_UNSUPPORTED, 0, "{}: a copy in memory keeps its size", path());
}

Result<void> OverlayMedium::read(std::uint64_t offset, std::span<std::byte> destination) const
{
    if (auto read = file_.read(offset, destination); !read) {
        return read;
    }
    const std::uint64_t end = offset + destination.size();
    for (auto page = written_.lower_bound(offset / page_bytes); page != written_.end() && page->first * page_bytes < end; ++page) {
        const std::uint64_t begin = page->first * page_bytes;
        const std::uint64_t from = std::max(begin, offset);
        const std::uint64_t to = std::min(begin + page_bytes, end);
        std::memcpy(destination.data() + (from - offset), page->second->data() + (from - begin), to - from);
    }
    return {};
}

Result<void> OverlayMedium::write(std::span<const BlockWrite> batch)
{
    for (const BlockWrite& write : batch) {
        for (std::uint64_t at = 0; at < write.size; at += page_bytes) {
            auto& page = written_[(write.offset + at) / page_bytes];
            if (page == nullptr) {
                page = std::make_unique<Page>();
            }
            std::memcpy(page->data(), write.data + at, page_bytes);
        }
    }
    return {};
}

void OverlayMedium::store(std::uint64_t offset, const void* data, std::size_t size) noexcept
{
    if (mapped_ != nullptr && offset >= mapped_offset_ && offset - mapped_offset_ <= mapped_bytes_ &&
        size <= mapped_bytes_ - (offset - mapped_offset_)) {
        std::memcpy(mapped_ + (offset - mapped_offset_), data, size);
    }
}

Result<void> OverlayMedium::map_at(std::byte* address, std::uint64_t offset, std::uint64_t size)
{
    if (mmap(address, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == MAP_FAILED) {
        return fail(SP_E_NO_MEMORY, errno, "{}: no memory for a copy of {} MiB", path(), size / mib);
    }
    constexpr std::uint64_t at_once = mib;
    std::vector<std::byte> bytes(std::min(at_once, size));
    static constexpr Page zeroes{};
    for (std::uint64_t done = 0; done < size; done += at_once) {
        const std::uint64_t count = std::min(at_once, size - done);
        if (auto read = this->read(offset + done, {bytes.data(), count}); !read) {
            return read;
        }
        for (std::uint64_t page = 0; page < count; page += page_bytes) {  // Pages of zeroes take no memory.
            if (std::memcmp(bytes.data() + page, zeroes.data(), page_bytes) != 0) {
                std::memcpy(address + done + page, bytes.data() + page, page_bytes);
            }
        }
        if (progress_ != nullptr) {
            progress_((done + count) / page_bytes, size / page_bytes);
        }
    }
    mapped_ = address;
    mapped_offset_ = offset;
    mapped_bytes_ = size;
    return {};
}

}  // namespace stillpoint::breeze

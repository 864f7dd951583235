#include "engines/nvthreads/processes/isolated_view.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>

#include "engines/nvthreads/processes/page_merge.hpp"
#include "engines/nvthreads/processes/redo_ring.hpp"
#include "os/own_mappings.hpp"

namespace stillpoint::nvthreads::processes {

Result<void> IsolatedView::map(std::byte* base, std::uint64_t image_bytes_max, int file)
{
    void* const shared = mmap(nullptr, image_bytes_max, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (shared == MAP_FAILED) {
        return fail(SP_E_NO_MEMORY, errno, "cannot map {} MiB of durable memory: {}", image_bytes_max / mib, std::strerror(errno));
    }
    if (os::map_own(base, image_bytes_max, PROT_READ, MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, file, 0) == MAP_FAILED) {
        return fail(SP_E_NO_MEMORY, errno, "cannot map a private view of {} MiB of durable memory: {}", image_bytes_max / mib,
                    std::strerror(errno));
    }
    base_ = base;
    shared_ = static_cast<std::byte*>(shared);
    bytes_ = image_bytes_max;
    if (auto done = is_open_.reserve(image_bytes_max / page_bytes, "the map of private pages"); !done) {
        return done;
    }
    if (auto done = open_pages_.reserve(open_pages_max, "the list of private pages"); !done) {
        return done;
    }
    return twins_.reserve(open_pages_max * page_bytes, "the twins of private pages");
}

bool IsolatedView::open_page(const void* address) noexcept
{
    if (!contains(address)) {
        return false;
    }
    const std::uint64_t page = static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - base_) / page_bytes;
    if (is_open_.test(page)) {
        return true;
    }
    if (open_count_ == open_pages_max || os::protect_own(page_at(page), page_bytes, PROT_READ | PROT_WRITE) != 0) {
        return false;
    }
    std::byte* const place = page_at(page);
    // A store of what is there makes the page private, so that the twin is the page as the thread begins with it: others merge meanwhile.
    // A load from the same place first would cost a fault of its own.
    *const_cast<volatile std::byte*>(place) = *shared_at(page);
    std::memcpy(twin_of(open_count_), place, page_bytes);
    open_pages_[open_count_++] = static_cast<std::uint32_t>(page);
    is_open_.set(page);
    return true;
}

void IsolatedView::open_pages(const void* address, std::size_t size) noexcept
{
    const auto* at = static_cast<const std::byte*>(address);
    const auto* const end = at + size;
    while (at < end && contains(at) && open_page(at)) {
        at += page_bytes - reinterpret_cast<std::uintptr_t>(at) % page_bytes;
    }
}

void IsolatedView::refresh() noexcept
{
    for (std::uint64_t i = 0; i < open_count_; ++i) {
        take_changes_of_others(page_at(open_pages_[i]), twin_of(i), shared_at(open_pages_[i]));
    }
}

std::uint64_t IsolatedView::collect(std::byte* record, std::uint64_t record_bytes_max) const noexcept
{
    std::uint64_t used = 0;
    bool fits = true;
    for (std::uint64_t i = 0; i < open_count_; ++i) {
        const std::uint64_t page = open_pages_[i];
        visit_differences(page_at(page), twin_of(i), [&](std::size_t begin, std::size_t end) {
            const std::uint64_t size = end - begin;
            fits = fits && used + sizeof(RunHead) + padded(size) <= record_bytes_max;
            if (fits) {
                const RunHead head{page * page_bytes + begin, size};
                std::memcpy(record + used, &head, sizeof head);
                std::memcpy(record + used + sizeof head, page_at(page) + begin, size);
                used += sizeof head + padded(size);
            }
        });
    }
    return fits ? used : UINT64_MAX;
}

const void* IsolatedView::find_race() const noexcept
{
    for (std::uint64_t i = 0; i < open_count_; ++i) {
        const std::uint64_t page = open_pages_[i];
        const std::byte* const shared = shared_at(page);
        if (std::memcmp(shared, twin_of(i), page_bytes) == 0) {
            continue;
        }
        const void* found = nullptr;
        visit_differences(page_at(page), twin_of(i), [&](std::size_t begin, std::size_t end) {
            const std::size_t at = processes::find_race(page_at(page), twin_of(i), shared, begin, end);
            if (at != end && found == nullptr) {
                found = page_at(page) + at;
            }
        });
        if (found != nullptr) {
            return found;
        }
    }
    return nullptr;
}

void IsolatedView::apply(std::byte* shared, std::uint64_t image_bytes, const std::byte* record, std::uint64_t bytes) noexcept
{
    visit_runs(record, bytes, [&](std::uint64_t offset, const std::byte* run, std::uint64_t size) {
        if (offset < image_bytes && size <= image_bytes - offset) {
            std::memcpy(shared + offset, run, size);
        }
    });
}

/// Neighbouring pages take one call for all of them.
void IsolatedView::drop() noexcept
{
    const int saved_errno = errno;
    std::sort(open_pages_.data(), open_pages_.data() + open_count_);
    for (std::uint64_t i = 0; i < open_count_;) {
        const std::uint64_t first = open_pages_[i];
        std::uint64_t end = first;
        while (i < open_count_ && open_pages_[i] == end) {
            is_open_.clear(end++);
            ++i;
        }
        os::advise_own(page_at(first), (end - first) * page_bytes, MADV_DONTNEED);
        os::protect_own(page_at(first), (end - first) * page_bytes, PROT_READ);
    }
    open_count_ = 0;
    errno = saved_errno;
}

}  // namespace stillpoint::nvthreads::processes

#include "os/file_mapping.hpp"

#include <cerrno>
#include <sys/mman.h>

#include "core/units.hpp"
#include "os/own_mappings.hpp"

namespace stillpoint::os {

namespace {

bool overlaps_window(const void* begin, std::uint64_t size) noexcept
{
    const auto address = reinterpret_cast<std::uintptr_t>(begin);
    return address < window_base + window_bytes && window_base < address + size;
}

/// Address space without memory behind it, or nullptr with errno.
std::byte* reserve_range(std::uint64_t size) noexcept
{
    void* const range = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) {
        return nullptr;
    }
    if (overlaps_window(range, size)) {
        munmap(range, size);
        errno = ENOMEM;
        return nullptr;
    }
    // Also not inherited, so that a child's range is empty as a whole.
    madvise(range, size, MADV_DONTFORK);
    return static_cast<std::byte*>(range);
}

}  // namespace

FileMapping::~FileMapping()
{
    if (base_ != nullptr) {
        munmap(base_, reserved_);
    }
}

int FileMapping::reserve(std::uint64_t wanted, std::uint64_t needed) noexcept
{
    needed = round_up(needed == 0 ? 1 : needed, page_bytes);
    std::uint64_t size = round_up(wanted < needed ? needed : wanted, page_bytes);
    for (;;) {
        base_ = reserve_range(size);
        if (base_ != nullptr) {
            reserved_ = size;
            return 0;
        }
        if (size == needed) {
            return errno;
        }
        size = round_up(size / 2 < needed ? needed : size / 2, page_bytes);
    }
}

int FileMapping::extend(int fd, std::uint64_t size, Mode mode) noexcept
{
    size = round_up(size, page_bytes);
    if (size > reserved_) {
        return ENOMEM;
    }
    if (size <= size_) {
        return 0;
    }
    std::byte* const place = base_ + size_;
    if (const int error = map_at(place, fd, size_, size - size_, mode); error != 0) {
        // A refused MAP_FIXED may have unmapped what lay there: keep the reservation whole.
        mmap(place, size - size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
        madvise(place, size - size_, MADV_DONTFORK);
        return error;
    }
    size_ = size;
    return 0;
}

int FileMapping::map_at(std::byte* address, int fd, std::uint64_t offset, std::uint64_t size, Mode mode) noexcept
{
    const int protection = mode == Mode::read_only ? PROT_READ : PROT_READ | PROT_WRITE;
    const int flags = mode == Mode::shared_direct  ? MAP_SHARED_VALIDATE | MAP_SYNC
                      : mode == Mode::private_copy ? MAP_PRIVATE | MAP_NORESERVE
                                                   : MAP_SHARED;
    if (map_own(address, size, protection, flags | MAP_FIXED, fd, static_cast<off_t>(offset)) == MAP_FAILED) {
        return errno;
    }
    advise_own(address, size, MADV_DONTFORK);
    return 0;
}

bool FileMapping::collapse_to_huge_pages(std::byte* address, std::uint64_t size) noexcept
{
#if !defined(MADV_COLLAPSE)
    constexpr int MADV_COLLAPSE = 25;  // Headers of Debian 12 have it not yet.
#endif
    return advise_own(address, size, MADV_COLLAPSE) == 0 || errno == EAGAIN || errno == EBUSY || errno == ENOMEM;
}

bool FileMapping::replace_page(void* address) noexcept
{
    const auto offset = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(base_);
    if (base_ == nullptr || offset >= size_) {
        return false;
    }
    return mmap(base_ + offset / page_bytes * page_bytes, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                0) != MAP_FAILED;
}

bool FileMapping::grants_direct(int fd) noexcept
{
    void* const probe = mmap(nullptr, page_bytes, PROT_READ, MAP_SHARED_VALIDATE | MAP_SYNC, fd, 0);
    if (probe == MAP_FAILED) {
        return false;
    }
    munmap(probe, page_bytes);
    return true;
}

void FileMapping::abandon_after_fork() noexcept
{
    base_ = nullptr;
    size_ = 0;
    reserved_ = 0;
}

}  // namespace stillpoint::os

#include "runtime/shadow.hpp"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

#include "os/card_table.hpp"
#include "os/own_mappings.hpp"

namespace stillpoint {

Result<void> Shadow::map(std::uintptr_t base, std::uint64_t image_bytes, std::uint64_t image_bytes_max, Pages pages)
{
    if (pages == Pages::shared) {
        if (auto made = make_file(image_bytes_max); !made) {
            return made;
        }
    }
    const int kind = file_ < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void* const wanted = reinterpret_cast<void*>(base);
    void* const mapped = os::map_own(wanted, image_bytes_max, PROT_NONE, kind | MAP_NORESERVE | MAP_FIXED_NOREPLACE, file_, 0);
    if (mapped == MAP_FAILED || mapped != wanted) {
        const int error = errno;
        if (mapped != MAP_FAILED) {
            os::unmap_own(mapped, image_bytes_max);
        }
        if (error == EEXIST || mapped != MAP_FAILED) {
            return fail(SP_E_WINDOW_TAKEN, error,
                        "the addresses {:#x} to {:#x} of the pool are in use in this process; the "
                        "pool's pointers are valid only there (/proc/self/maps shows what uses "
                        "them)",
                        base, base + image_bytes_max);
        }
        return fail(SP_E_NO_MEMORY, error, "cannot reserve {} MiB of addresses at {:#x}: {}", image_bytes_max / mib, base,
                    std::strerror(error));
    }
    base_ = static_cast<std::byte*>(mapped);
    bytes_max_ = image_bytes_max;
    if (!os::claim_mapping(base_, bytes_max_)) {
        unmap();
        return fail(SP_E_NO_MEMORY, 0, "too many pools are open in this process: close one");
    }
    os::advise_own(base_, bytes_max_, pages == Pages::huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    if (auto done = make_accessible(image_bytes); !done) {
        return done;
    }
    publish(image_bytes);
    return {};
}

Result<void> Shadow::make_file(std::uint64_t image_bytes_max)
{
    file_ = memfd_create("stillpoint image", MFD_CLOEXEC);
    if (file_ < 0 || ftruncate(file_, static_cast<off_t>(image_bytes_max)) != 0) {
        return fail(SP_E_NO_MEMORY, errno, "no shared memory for a copy of {} MiB of durable memory: {}", image_bytes_max / mib,
                    std::strerror(errno));
    }
    return {};
}

Result<void> Shadow::make_accessible(std::uint64_t image_bytes)
{
    // However written pages are found: a program whose code marks cards may run with any engine.
    if (auto mapped = os::map_cards(base_ + bytes(), image_bytes - bytes()); !mapped) {
        return mapped;
    }
    if (os::protect_own(base_ + bytes(), image_bytes - bytes(), PROT_READ | PROT_WRITE) != 0) {
        return fail(SP_E_NO_MEMORY, errno, "cannot make {} MiB of durable memory accessible: {}", image_bytes / mib, std::strerror(errno));
    }
    return {};
}

void Shadow::unmap() noexcept
{
    if (base_ != nullptr) {
        os::disown_mapping(base_);
        os::unmap_own(base_, bytes_max_);
        base_ = nullptr;
        publish(0);
    }
    if (file_ >= 0) {
        close(file_);
        file_ = -1;
    }
}

}  // namespace stillpoint

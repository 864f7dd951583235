// Whether the file is still the one that was opened, and whole. A call on a file that was cut off, or on a descriptor that the
// program has closed or put another file behind, need not fail: a write makes a cut file long again, with holes.

#include <cerrno>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "media/pool_file.hpp"

namespace stillpoint {

/// Past libc's fstat: another preloaded library may stand in front of that (libfaketime, fakeroot), and at the program's end it has
/// taken itself apart before the last checkpoint is written.
bool PoolFile::is_descriptor_of_this(int fd, struct stat& facts) const noexcept
{
    return syscall(SYS_fstat, fd, &facts) == 0 && facts.st_dev == identity_.device && facts.st_ino == identity_.inode;
}

Result<void> PoolFile::check_intact(int other)
{
    const char* what = nullptr;
    sp_error code = SP_E_IO;
    struct stat facts{};
    if (lost_page_.load(std::memory_order_acquire)) {
        what = "a page of it that was mapped is gone: the file was truncated, or its medium failed";
    } else if ((other >= 0 && !is_descriptor_of_this(other, facts)) || !is_descriptor_of_this(fd(), facts)) {
        what = "its descriptor was closed, or refers to another file: the program closes descriptors that it did not open";
    } else if (static_cast<std::uint64_t>(facts.st_size) < size_bytes_) {
        what = "another process truncated the file while it was open";
        code = SP_E_POOL_TRUNCATED;
    } else if (facts.st_nlink == 0 && !unnamed_) {
        what = "another process deleted the file while it was open";
    }
    if (what == nullptr) {
        return {};
    }
    frozen_ = true;
    return fail(code, 0, "{}: {}; nothing later becomes durable", path_, what);
}

}  // namespace stillpoint

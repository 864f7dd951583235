#include "os/range_lock.hpp"

#include <cerrno>
#include <fcntl.h>

namespace stillpoint::os {

namespace {

struct flock lock_of(LockByte byte, short kind) noexcept
{
    struct flock lock{};
    lock.l_type = kind;
    lock.l_whence = SEEK_SET;
    lock.l_start = (off_t{1} << 62) + static_cast<off_t>(byte);
    lock.l_len = 1;
    return lock;
}

}  // namespace

int try_lock_byte(int fd, LockByte byte, bool exclusive) noexcept
{
    struct flock lock = lock_of(byte, exclusive ? F_WRLCK : F_RDLCK);
    return fcntl(fd, F_OFD_SETLK, &lock) == 0 ? 0 : errno;
}

void unlock_byte(int fd, LockByte byte) noexcept
{
    struct flock lock = lock_of(byte, F_UNLCK);
    [[maybe_unused]] const int ignored = fcntl(fd, F_OFD_SETLK, &lock);
}

bool is_byte_locked(int fd, LockByte byte, bool exclusive) noexcept
{
    struct flock lock = lock_of(byte, exclusive ? F_WRLCK : F_RDLCK);
    return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

}  // namespace stillpoint::os

#include "media/whole_transfers.hpp"

#include <cerrno>
#include <unistd.h>

#include "os/file_size_limit.hpp"

namespace stillpoint {

int read_all(int file, std::byte* bytes, std::size_t size, std::uint64_t offset, std::size_t& got) noexcept
{
    for (got = 0; got < size;) {
        const ssize_t count = pread(file, bytes + got, size - got, static_cast<off_t>(offset + got));
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return errno;
        }
        if (count == 0) {
            break;
        }
        got += static_cast<std::size_t>(count);
    }
    return 0;
}

int write_all(int file, const std::byte* bytes, std::size_t size, std::uint64_t offset) noexcept
{
    const os::FileSizeSignalHeld held;
    for (std::size_t done = 0; done < size;) {
        const ssize_t count = pwrite(file, bytes + done, size - done, static_cast<off_t>(offset + done));
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            return count == 0 ? EIO : errno;
        }
        done += static_cast<std::size_t>(count);
    }
    return 0;
}

}  // namespace stillpoint

// Copies a pool for its checker. Pools are allocated as a whole and written in part: only what was written is copied.

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

#include "crash_rounds.hpp"
#include "os/descriptor.hpp"
#include "os/file_size_limit.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::size_t piece_bytes = 1 << 20;

/// errno, or 0.
int copy_range(int from, int to, off_t begin, off_t end, char* piece)
{
    for (off_t at = begin; at < end;) {
        const auto wanted = static_cast<std::size_t>(std::min<off_t>(end - at, piece_bytes));
        const ssize_t got = pread(from, piece, wanted, at);
        if (got <= 0) {
            return got == 0 ? EIO : errno;
        }
        for (ssize_t done = 0; done < got;) {
            const ssize_t written = pwrite(to, piece + done, static_cast<std::size_t>(got - done), at + done);
            if (written <= 0) {
                return written == 0 ? EIO : errno;
            }
            done += written;
        }
        at += got;
    }
    return 0;
}

/// errno, or 0.
int copy_data(int from, int to)
{
    const os::FileSizeSignalHeld held;
    struct stat facts{};
    if (fstat(from, &facts) != 0 || ftruncate(to, facts.st_size) != 0) {
        return errno;
    }
    const auto piece = std::make_unique<char[]>(piece_bytes);
    off_t at = 0;
    while (at < facts.st_size) {
        off_t begin = lseek(from, at, SEEK_DATA);
        if (begin < 0 && errno == ENXIO) {
            return 0;  // Nothing but a hole up to the end.
        }
        begin = begin < 0 ? at : begin;  // A file system that cannot tell.
        off_t end = lseek(from, begin, SEEK_HOLE);
        end = end < 0 ? facts.st_size : end;
        if (const int error = copy_range(from, to, begin, end, piece.get()); error != 0) {
            return error;
        }
        at = end;
    }
    return 0;
}

}  // namespace

Result<void> copy_sparse(const std::string& from, const std::string& to)
{
    const os::Descriptor source{open(from.c_str(), O_RDONLY | O_CLOEXEC)};
    int error = source.valid() ? 0 : errno;
    if (error == 0) {
        unlink(to.c_str());
        const os::Descriptor target{open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
        error = target.valid() ? copy_data(source.get(), target.get()) : errno;
    }
    if (error != 0) {
        return fail(error == ENOSPC ? SP_E_NO_SPACE : SP_E_IO, error, "cannot copy {} to {}: {}", from, to, std::strerror(error));
    }
    return {};
}

}  // namespace stillpoint::tool

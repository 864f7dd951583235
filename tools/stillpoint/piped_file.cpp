#include "piped_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <unistd.h>

#include "core/units.hpp"
#include "media/errno_text.hpp"
#include "media/whole_transfers.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::size_t piece_bytes = mib;

}  // namespace

Result<void> send_to_output(int file, std::uint64_t bytes)
{
    const auto piece = std::make_unique<std::byte[]>(piece_bytes);
    for (std::uint64_t at = 0; at < bytes;) {
        std::size_t got = 0;
        const int error = read_all(file, piece.get(), std::min<std::uint64_t>(piece_bytes, bytes - at), at, got);
        if (error != 0 || got == 0) {
            return fail(SP_E_IO, error, "cannot read the copy: {}", error != 0 ? std::strerror(error) : "it has become shorter");
        }
        for (std::size_t done = 0; done < got;) {
            const ssize_t written = write(STDOUT_FILENO, piece.get() + done, got - done);
            if (written < 0 && errno != EINTR) {
                return fail(SP_E_IO, errno, "cannot write to standard output: {}", std::strerror(errno));
            }
            done += static_cast<std::size_t>(std::max<ssize_t>(written, 0));
        }
        at += got;
    }
    return {};
}

Result<os::Descriptor> keep_input(const std::string& folder)
{
    os::Descriptor file{open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)};
    if (!file.valid()) {
        const int error = errno;
        const bool has_none = error == EOPNOTSUPP || error == EISDIR;
        return fail(has_none ? SP_E_UNSUPPORTED : code_of_errno(error), error, "cannot keep standard input in {}: {}; {}", folder,
                    describe_errno(error), has_none ? "save it as a file, and name that" : advice_for_errno(error));
    }
    const auto piece = std::make_unique<std::byte[]>(piece_bytes);
    for (std::uint64_t at = 0;;) {
        const ssize_t count = read(STDIN_FILENO, piece.get(), piece_bytes);
        if (count == 0) {
            return file;
        }
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return fail(SP_E_IO, errno, "cannot read standard input: {}", std::strerror(errno));
        }
        if (const int error = write_all(file.get(), piece.get(), static_cast<std::size_t>(count), at); error != 0) {
            return fail(code_of_errno(error), error, "cannot keep standard input in {}: {}; {}", folder, describe_errno(error),
                        advice_for_errno(error));
        }
        at += static_cast<std::uint64_t>(count);
    }
}

}  // namespace stillpoint::tool

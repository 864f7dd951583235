#pragma once
// The limit of file sizes (RLIMIT_FSIZE, ulimit -f): a call of ours that goes beyond it is an error, and not the end of the program.

#include <cstdint>

namespace stillpoint::os {

/// As long as it lives, a write or an allocation of the calling thread beyond the limit fails with EFBIG, and its SIGXFSZ never reaches the
/// program: neither its default, which ends the process, nor a handler that the program has for writes of its own. A SIGXFSZ that was
/// pending before stays so. The kernel sends the signal to the thread that writes; io_uring's workers have it blocked. Keeps errno.
/// Cost: three system calls without work.
class FileSizeSignalHeld {
public:
    FileSizeSignalHeld() noexcept;
    ~FileSizeSignalHeld();
    FileSizeSignalHeld(const FileSizeSignalHeld&) = delete;
    FileSizeSignalHeld& operator=(const FileSizeSignalHeld&) = delete;

private:
    std::uint64_t mask_before_ = 0;  ///< as the kernel has sets: bit 0 is signal 1
    bool was_pending_ = false;
};

}  // namespace stillpoint::os

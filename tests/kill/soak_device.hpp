#pragma once
// A move of the soak: a device stores into a durable block, by a direct read or by io_uring with and without registered buffers.

#include <atomic>
#include <cstdint>

namespace soak {

/// Durable. The block holds, page by page, what page `first` and the next ones of the device file hold.
struct DeviceBlock {
    std::uint64_t reads;
    unsigned char* bytes;
    std::uint64_t first;  ///< 1 + number of the page of the file; 0: nothing was read yet
};

/// Makes a file beside the notes. `rings`: io_uring is used as well, which only a tracker of all pages follows. False: there is no
/// direct I/O here, and the move is left out.
[[nodiscard]] bool open_device(const char* notes, bool rings);
/// Inside a failure-atomic section. Adds to `made` each read that was whole. False: the read failed or was short.
[[nodiscard]] bool read_device(DeviceBlock& block, std::uint64_t random, std::atomic<std::uint64_t>& made);
[[nodiscard]] bool verify_device(const DeviceBlock& block);

}  // namespace soak

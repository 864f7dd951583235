#pragma once
// Emulated persistent memory for experiments: a shared mapping of a file (tmpfs, or any other) with the
// latency and bandwidth of a slower medium. It survives the process; the machine only as far as
// the file does.

#include <cstdint>
#include <memory>

#include "media/mapped_medium.hpp"

namespace stillpoint {

class MemoryMedium final : public MappedMedium {
public:
    /// Errors: no_memory, io.
    [[nodiscard]] static Result<std::unique_ptr<Medium>> open(PoolFile file, const MediumOptions& options);

private:
    MemoryMedium(PoolFile file, const MediumOptions& options);
    void charge_lines(std::size_t lines) noexcept override;
    void charge_pages(std::size_t bytes) noexcept override;
    [[nodiscard]] std::string_view mechanism_prefix() const noexcept override { return prefix_; }
    void charge(std::uint64_t latency_ns, std::uint64_t bytes) noexcept;

    std::uint64_t line_latency_ns_;      ///< [PMThreads §6.1]
    std::uint64_t page_latency_ns_;      ///< of 4 KiB or a part of it [NVthreads]
    std::uint64_t bytes_per_s_;          ///< 0: no cap
    os::FutexLock busy_lock_;
    std::uint64_t busy_until_ns_ = 0;    ///< When the emulated medium has written all it was given.
    char prefix_[64] = {};
};

}  // namespace stillpoint

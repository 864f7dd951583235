#pragma once
// The shadow: the DRAM copy of the image that the program reads and writes [PMThreads §3.1],
// private anonymous memory at the pool's base address.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/result.hpp"
#include "core/units.hpp"

namespace stillpoint {

class Shadow {
public:
    Shadow() = default;
    Shadow(const Shadow&) = delete;
    Shadow& operator=(const Shadow&) = delete;
    ~Shadow() { unmap(); }

    /// Pages of the CPU that the shadow may lie in. small: 4 KiB, the unit of trackers that protect pages; a huge one would be
    /// split by the first tracked write to it, at ten times the cost of an ordinary first write.
    /// shared: small ones of a file in memory, which other processes can map.
    enum class Pages { small, huge, shared };

    /// Reserves the addresses of the largest image and makes the present one accessible.
    /// Errors: window_taken (with what is there), no_memory.
    [[nodiscard]] Result<void> map(std::uintptr_t base, std::uint64_t image_bytes, std::uint64_t image_bytes_max, Pages pages);
    /// Makes addresses up to `image_bytes` accessible, and their cards; bytes() stays until publish(), so that no thread
    /// looks for written pages where the tracker does not know them yet. Errors: window_taken, no_memory.
    [[nodiscard]] Result<void> make_accessible(std::uint64_t image_bytes);
    void publish(std::uint64_t image_bytes) noexcept { bytes_.store(image_bytes, std::memory_order_release); }
    void unmap() noexcept;

    /// The file of Pages::shared; else -1.
    [[nodiscard]] int file() const noexcept { return file_; }
    [[nodiscard]] std::byte* base() const noexcept { return base_; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_acquire); }
    [[nodiscard]] std::byte* page(std::uint64_t image_page) const noexcept { return base_ + image_page * page_bytes; }

private:
    [[nodiscard]] Result<void> make_file(std::uint64_t image_bytes_max);

    std::byte* base_ = nullptr;
    int file_ = -1;
    std::atomic<std::uint64_t> bytes_{0};
    std::uint64_t bytes_max_ = 0;
};

}  // namespace stillpoint

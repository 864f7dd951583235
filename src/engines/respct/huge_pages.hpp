#pragma once
// Puts a mapped image into the CPU's huge pages, piece by piece, while the program runs. A hash map that reads at random spends
// two thirds of a read on the page tables otherwise: 52 ns against 14 (docs/internals/decisions/respct-huge-pages.md).

#include <atomic>
#include <cstdint>

#include "core/result.hpp"
#include "engines/respct/image_memory.hpp"
#include "os/service_thread.hpp"

namespace stillpoint::respct {

class HugePages {
public:
    HugePages() = default;
    HugePages(const HugePages&) = delete;
    HugePages& operator=(const HugePages&) = delete;
    ~HugePages() { stop(); }

    /// Nothing where the image is private memory, which asks for huge pages when it is mapped. Errors: no_memory.
    [[nodiscard]] Result<void> start(const ImageMemory& memory);
    void stop() noexcept;
    void detach_after_fork() noexcept { thread_.forget(); }

private:
    static void run(void* self);
    void collapse_all() noexcept;
    /// False: it is time to end.
    [[nodiscard]] bool rest(std::uint64_t ns) noexcept;

    const ImageMemory* memory_ = nullptr;
    os::ServiceThread thread_;
    std::atomic<std::uint32_t> stopping_{0};  ///< a futex
};

}  // namespace stillpoint::respct

#include "media/memory_medium.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "os/clock.hpp"
#include "os/futex.hpp"

namespace stillpoint {

namespace {

/// How far the emulated medium may lag behind before its writer waits: a device's own buffer.
constexpr std::uint64_t burst_ns = 20'000;
/// Waits longer than this sleep at first, so as not to take a core from the program.
constexpr std::uint64_t spin_ns = 200'000;

void wait_until(std::uint64_t deadline_ns) noexcept
{
    static const std::atomic<std::uint32_t> never_woken{0};
    for (std::uint64_t now = os::monotonic_ns(); now < deadline_ns; now = os::monotonic_ns()) {
        if (deadline_ns - now > spin_ns) {
            os::futex_wait(never_woken, 0, deadline_ns - spin_ns / 2);
        }
    }
}

}  // namespace

Result<std::unique_ptr<Medium>> MemoryMedium::open(PoolFile file, const MediumOptions& options)
{
    std::unique_ptr<MemoryMedium> medium{new MemoryMedium(std::move(file), options)};
    if (auto mapped = medium->map(); !mapped) {
        return pass_on(mapped.error());
    }
    return medium;
}

MemoryMedium::MemoryMedium(PoolFile file, const MediumOptions& options)
    : MappedMedium(std::move(file), options, os::FileMapping::Mode::shared), line_latency_ns_(options.line_latency_ns),
      page_latency_ns_(options.page_latency_ns), bytes_per_s_(options.bandwidth_mb_per_s * mib)
{
    const auto end = fmt::format_to_n(prefix_, sizeof prefix_ - 1, "emulated ({} ns/line, {} ns/page, {} MiB/s)", line_latency_ns_,
                                      page_latency_ns_, options.bandwidth_mb_per_s);
    *end.out = '\0';
}

void MemoryMedium::charge_lines(std::size_t lines) noexcept { charge(lines * line_latency_ns_, lines * cache_line_bytes); }

void MemoryMedium::charge_pages(std::size_t bytes) noexcept { charge((bytes + page_bytes - 1) / page_bytes * page_latency_ns_, bytes); }

void MemoryMedium::charge(std::uint64_t latency_ns, std::uint64_t bytes) noexcept
{
    if (latency_ns == 0 && bytes_per_s_ == 0) {
        return;
    }
    const std::uint64_t now = os::monotonic_ns();
    std::uint64_t deadline = now + latency_ns;
    if (bytes_per_s_ != 0) {
        const std::lock_guard guard(busy_lock_);
        busy_until_ns_ = std::max(busy_until_ns_, now) + bytes * 1'000'000'000u / bytes_per_s_;
        deadline = std::max(deadline, busy_until_ns_ - std::min(busy_until_ns_, burst_ns));
    }
    wait_until(deadline);
}

}  // namespace stillpoint

#include "engines/respct/huge_pages.hpp"

#include <algorithm>

#include "engines/respct/respct_layout.hpp"
#include "os/clock.hpp"
#include "os/file_mapping.hpp"
#include "os/futex.hpp"

namespace stillpoint::respct {

namespace {

constexpr std::uint64_t look_for_growth_ns = 100'000'000;
/// A piece takes about a millisecond, in which threads that touch it wait. It is followed by so many times as long a rest.
constexpr std::uint64_t rest_factor = 1;

}  // namespace

Result<void> HugePages::start(const ImageMemory& memory)
{
    memory_ = &memory;
    stopping_.store(0, std::memory_order_relaxed);
    return memory.in_place() ? thread_.start("sp-huge-pages", &run, this) : Result<void>{};
}

void HugePages::stop() noexcept
{
    stopping_.store(1, std::memory_order_release);
    os::futex_wake(stopping_);
    thread_.join();
}

void HugePages::run(void* self) { static_cast<HugePages*>(self)->collapse_all(); }

bool HugePages::rest(std::uint64_t ns) noexcept
{
    const std::uint64_t until_ns = os::monotonic_ns() + ns;
    while (stopping_.load(std::memory_order_acquire) == 0 && os::monotonic_ns() < until_ns) {
        os::futex_wait(stopping_, 0, until_ns);
    }
    return stopping_.load(std::memory_order_acquire) == 0;
}

void HugePages::collapse_all() noexcept
{
    std::uint64_t done = round_up(memory_->private_bytes(), huge_page_bytes);
    while (true) {
        while (done + huge_page_bytes > memory_->bytes()) {
            if (!rest(look_for_growth_ns)) {
                return;
            }
        }
        const std::uint64_t begun_ns = os::monotonic_ns();
        if (!os::FileMapping::collapse_to_huge_pages(memory_->base() + done, huge_page_bytes)) {
            return;  // This kernel, or this file system, has none.
        }
        done += huge_page_bytes;
        if (!rest(rest_factor * (os::monotonic_ns() - begun_ns))) {
            return;
        }
    }
}

}  // namespace stillpoint::respct

#include "runtime/epoch_clock.hpp"

#include "os/clock.hpp"

namespace stillpoint {

Result<void> EpochClock::wait_durable(std::uint64_t epoch, std::uint64_t deadline_ns) noexcept
{
    std::uint64_t wanted = wanted_.load(std::memory_order_relaxed);
    while (wanted < epoch && !wanted_.compare_exchange_weak(wanted, epoch, std::memory_order_acq_rel)) {
    }
    while (true) {
        const std::uint32_t seen = changes_.load(std::memory_order_acquire);
        if (durable() >= epoch) {
            return {};
        }
        if (failed()) {
            return fail(SP_E_POOL_READ_ONLY, failure_.os_error, "epoch {} will never be durable: {}", epoch, failure_.text());
        }
        if (os::monotonic_ns() >= deadline_ns) {
            return fail(SP_E_TIMED_OUT, 0, "epoch {} is not durable yet; the newest durable epoch is {}", epoch, durable());
        }
        os::futex_wait(changes_, seen, deadline_ns);
    }
}

}  // namespace stillpoint

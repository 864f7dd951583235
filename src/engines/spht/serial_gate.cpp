#include "engines/spht/serial_gate.hpp"

#include "logs/commit_order.hpp"
#include "os/thread_calls.hpp"

namespace stillpoint::spht {

void SerialGate::wake() noexcept
{
    changes_.fetch_add(1, std::memory_order_acq_rel);
    os::futex_wake(changes_);
}

void SerialGate::enter_slowly(Place& place) noexcept
{
    while (true) {
        const std::uint32_t seen = changes_.load(std::memory_order_acquire);
        if (closed_.load(std::memory_order_acquire) == 0) {
            place.running.store(1, std::memory_order_seq_cst);
            if (closed_.load(std::memory_order_seq_cst) == 0) {
                return;
            }
        }
        place.running.store(0, std::memory_order_release);
        wake();
        const std::uint32_t now = changes_.load(std::memory_order_acquire);
        if (closed_.load(std::memory_order_acquire) != 0 && now == seen + 1) {
            os::futex_wait(changes_, now);
        }
    }
}

void SerialGate::await_change() noexcept
{
    const std::uint32_t seen = changes_.load(std::memory_order_acquire);
    if (closed_.load(std::memory_order_acquire) != 0) {
        os::futex_wait(changes_, seen);
    }
}

void SerialGate::enter_alone(Place& place) noexcept
{
    alone_.lock();
    closed_.store(1, std::memory_order_seq_cst);
    os::membarrier();
    const std::uint32_t count = count_.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i < count; ++i) {
        while (true) {
            const std::uint32_t seen = changes_.load(std::memory_order_acquire);
            if (&places_[i] == &place || places_[i].running.load(std::memory_order_acquire) == 0) {
                break;
            }
            os::futex_wait(changes_, seen);
        }
    }
}

void SerialGate::leave_alone(Place& /*place*/) noexcept
{
    closed_.store(0, std::memory_order_seq_cst);
    wake();
    alone_.unlock();
}

void SerialGate::want_moments() noexcept
{
    has_moments_.store(true, std::memory_order_seq_cst);
    // A thread that began before and did not look has its place marked now; its moment is an old one or 0.
    os::membarrier();
}

void SerialGate::await_moments_after(std::uint64_t timestamp) noexcept
{
    const std::uint32_t count = count_.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i < count; ++i) {
        const Place& other = places_[i];
        for (unsigned turns = 0;
             other.running.load(std::memory_order_acquire) != 0 && other.moment.load(std::memory_order_acquire) <= timestamp;) {
            logs::wait_turn(turns);
        }
    }
}

void SerialGate::reset_after_fork() noexcept
{
    alone_.reset_after_fork();
    closed_.store(0, std::memory_order_relaxed);
}

}  // namespace stillpoint::spht

#pragma once
// OpenFases: where a crash may cut the logs [NVthreads §2, "tracks dependence between failure atomic regions"].
//
// Records have timestamps in the order in which threads can see each other's stores, so a FASE never has an earlier timestamp than one
// whose results it has seen. One case is left: a FASE that releases a lock, or wakes a thread, before it ends. Others may see its first
// part, and become durable only with or after the whole of it. So no cut lies between the first part of a FASE that a lock release has
// handed over, and its end: while such FASEs are open, the cut stays in front of the oldest of them.

#include <atomic>
#include <cstdint>

#include "logs/commit_clock.hpp"
#include "os/futex.hpp"

namespace stillpoint::nvthreads {

using logs::Timestamp;

/// Threads: any.
class OpenFases {
public:
    /// A FASE hands its first part over before it ends. Returns the timestamp of that part.
    [[nodiscard]] Timestamp open(logs::CommitClock& clock) noexcept;
    /// The FASE has ended, and its last record is in its log.
    void close() noexcept;
    /// The newest timestamp that was given and at which no FASE is divided.
    [[nodiscard]] Timestamp cut(const logs::CommitClock& clock) noexcept;
    [[nodiscard]] bool any() noexcept;

    /// How many have ended, for await_end(). To be read before the look at what one waits for.
    [[nodiscard]] std::uint32_t ends() const noexcept { return ends_.load(std::memory_order_acquire); }
    /// Returns when one more than `seen` has ended, or at the deadline.
    void await_end(std::uint32_t seen, std::uint64_t deadline_ns) noexcept;

    void reset_after_fork() noexcept { lock_.reset_after_fork(); }

private:
    os::FutexLock lock_;
    std::uint32_t count_ = 0;
    Timestamp since_ = 0;  ///< of the first part of the oldest, since count_ was 0
    std::atomic<std::uint32_t> ends_{0};  ///< a futex
    std::atomic<std::uint32_t> waiters_{0};
};

}  // namespace stillpoint::nvthreads

#include "engines/nvthreads/open_fases.hpp"

#include <mutex>

#include "core/canary.hpp"

namespace stillpoint::nvthreads {

Timestamp OpenFases::open(logs::CommitClock& clock) noexcept
{
    const std::lock_guard guard(lock_);
    // Under the lock: a cut that sees no open FASE has a clock from before this timestamp.
    const Timestamp timestamp = clock.next();
    if (count_++ == 0) {
        since_ = timestamp;
    }
    return timestamp;
}

void OpenFases::close() noexcept
{
    {
        const std::lock_guard guard(lock_);
        --count_;
    }
    ends_.fetch_add(1, std::memory_order_seq_cst);
    if (waiters_.load(std::memory_order_seq_cst) != 0) {
        os::futex_wake(ends_);
    }
}

Timestamp OpenFases::cut(const logs::CommitClock& clock) noexcept
{
    const std::lock_guard guard(lock_);
    return count_ == 0 || is_removed(Canary::open_fases) ? clock.now() : since_ - logs::CommitClock::counter_step;
}

bool OpenFases::any() noexcept
{
    const std::lock_guard guard(lock_);
    return count_ != 0;
}

void OpenFases::await_end(std::uint32_t seen, std::uint64_t deadline_ns) noexcept
{
    waiters_.fetch_add(1, std::memory_order_seq_cst);
    os::futex_wait(ends_, seen, deadline_ns);
    waiters_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace stillpoint::nvthreads

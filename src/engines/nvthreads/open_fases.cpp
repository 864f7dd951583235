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
    const std::lock_guard guard(lock_);
    --count_;
}

Timestamp OpenFases::cut(const logs::CommitClock& clock) noexcept
{
    const std::lock_guard guard(lock_);
    return count_ == 0 || is_removed(Canary::open_fases) ? clock.now() : since_ - 1;
}

bool OpenFases::any() noexcept
{
    const std::lock_guard guard(lock_);
    return count_ != 0;
}

}  // namespace stillpoint::nvthreads

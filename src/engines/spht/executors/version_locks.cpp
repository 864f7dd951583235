#include "engines/spht/executors/version_locks.hpp"

#include <algorithm>

#include "logs/commit_order.hpp"

namespace stillpoint::spht {

void VersionLocks::outdate(std::uintptr_t begin, std::uint64_t size_bytes, Timestamp now) noexcept
{
    const std::uint64_t word = timestamp_for(now, false) << 1;
    const std::uintptr_t end = begin + std::min(size_bytes, covered_bytes);
    for (std::uintptr_t line = begin & ~std::uintptr_t{cache_line_bytes - 1}; line < end; line += cache_line_bytes) {
        Lock& lock = of(line);
        std::uint64_t before = lock.load(std::memory_order_relaxed);
        for (unsigned turns = 0; is_locked(before) || before < word;) {
            if (is_locked(before)) {
                logs::wait_turn(turns);
                before = lock.load(std::memory_order_relaxed);
            } else if (lock.compare_exchange_weak(before, word, std::memory_order_acq_rel, std::memory_order_relaxed)) {
                break;
            }
        }
    }
}

}  // namespace stillpoint::spht

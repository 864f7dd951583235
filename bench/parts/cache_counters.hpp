#pragma once
// Loads and misses of the calling thread in its core's first data cache, by the processor's own counters, where the kernel offers them.
// Virtual machines often have none.

#include <cstdint>
#include <linux/perf_event.h>
#include <optional>
#include <sys/syscall.h>
#include <unistd.h>

namespace bench {

class CacheCounters {
public:
    CacheCounters() noexcept : loads_(open(PERF_COUNT_HW_CACHE_RESULT_ACCESS)), misses_(open(PERF_COUNT_HW_CACHE_RESULT_MISS)) {}
    CacheCounters(const CacheCounters&) = delete;
    CacheCounters& operator=(const CacheCounters&) = delete;
    ~CacheCounters()
    {
        for (const int counter : {loads_, misses_}) {
            if (counter >= 0) {
                close(counter);
            }
        }
    }

    struct Counts {
        std::uint64_t loads;
        std::uint64_t misses;
    };
    /// Since the counters were opened. nullopt: there are none.
    [[nodiscard]] std::optional<Counts> read() const noexcept
    {
        Counts counts{};
        if (::read(loads_, &counts.loads, 8) != 8 || ::read(misses_, &counts.misses, 8) != 8 || counts.loads == 0) {
            return std::nullopt;
        }
        return counts;
    }

private:
    static int open(std::uint64_t result) noexcept
    {
        perf_event_attr wanted{};
        wanted.type = PERF_TYPE_HW_CACHE;
        wanted.size = sizeof wanted;
        wanted.config = PERF_COUNT_HW_CACHE_L1D | std::uint64_t{PERF_COUNT_HW_CACHE_OP_READ} << 8 | result << 16;
        wanted.exclude_kernel = 1;
        wanted.exclude_hv = 1;
        return static_cast<int>(syscall(SYS_perf_event_open, &wanted, 0, -1, -1, 0));
    }

    int loads_;
    int misses_;
};

}  // namespace bench

#pragma once
// The side of pronto, the same for every worker: the pool is that of `stillpoint run`, work is settled by a snapshot.

#include <cstdint>
#include <string>

#include "../harness/ending.hpp"
#include "../harness/commands.hpp"
#include "stillpoint/pronto.h"
#include "stillpoint/stillpoint.h"

namespace bench {

/// A figure of the runtime (docs/guide/statistics.md); 0 where it has none.
inline std::uint64_t statistic(const char* name)
{
    std::uint64_t value = 0;
    return sp_statistic(name, &value) == SP_OK ? value : 0;
}

inline void take_snapshot()
{
    if (sp_pronto_snapshot() != SP_OK) {
        give_up(std::string("no snapshot: ") + sp_last_error());
    }
}

class Side {
public:
    static constexpr const char* name = "pronto";

    explicit Side(const Settings&) {}
    /// Counters count from here.
    void begin()
    {
        for (unsigned i = 0; i < counted; ++i) {
            before_[i] = statistic(counters[i]);
        }
    }
    /// The growth since begin().
    void add_counters(Answer& answer) const
    {
        Answer grown;
        for (unsigned i = 0; i < counted; ++i) {
            grown.number(counters[i], statistic(counters[i]) - before_[i]);
        }
        answer.raw("counters", grown.json());
    }
    void settle() { take_snapshot(); }

private:
    static constexpr const char* counters[] = {"fences", "lines_written_back", "medium_syncs", "bytes_written", "checkpoints"};
    static constexpr unsigned counted = sizeof counters / sizeof counters[0];

    std::uint64_t before_[counted] = {};
};

}  // namespace bench

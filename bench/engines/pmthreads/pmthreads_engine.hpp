#pragma once
// pmthreads: locks delimit the operations, stores are found by the tracker.

#include "../section_engine.hpp"

namespace bench {

#ifdef BENCH_HOOKS
struct PmthreadsEngine : SectionEngine<PmthreadsEngine, StoresSeen::compiled> {};  // docs/guide/nvhooks.md, "Limits"
#else
struct PmthreadsEngine : SectionEngine<PmthreadsEngine, StoresSeen::all> {};
#endif
static_assert(MemoryEngine<PmthreadsEngine>);

}  // namespace bench

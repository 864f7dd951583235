#pragma once
// nvthreads: locks delimit the operations, stores are told by the compiler.

#include "../section_engine.hpp"

namespace bench {

struct NvthreadsEngine : SectionEngine<NvthreadsEngine, StoresSeen::compiled> {};  // docs/guide/nvhooks.md, "Limits"
static_assert(MemoryEngine<NvthreadsEngine>);

}  // namespace bench

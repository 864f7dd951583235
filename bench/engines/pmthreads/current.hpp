#pragma once
// The worker of the engine pmthreads.

#include "pmthreads_engine.hpp"

#define BENCH_HAS_MEMORY 1

namespace bench {
using CurrentEngine = PmthreadsEngine;
}

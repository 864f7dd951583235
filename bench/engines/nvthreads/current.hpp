#pragma once
// The worker of the engine nvthreads.

#include "nvthreads_engine.hpp"

#define BENCH_HAS_MEMORY 1

namespace bench {
using CurrentEngine = NvthreadsEngine;
}

#pragma once
// The worker without Stillpoint.

#include "../volatile_engine.hpp"

#define BENCH_HAS_MEMORY 1

namespace bench {
using CurrentEngine = VolatileEngine;
}

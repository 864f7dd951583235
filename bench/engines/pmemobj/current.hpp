#pragma once
// The worker of the peer pmemobj.

#include "../pmemobj_engine.hpp"

#define BENCH_HAS_MEMORY 1

namespace bench {
using CurrentEngine = PmemobjEngine;
}

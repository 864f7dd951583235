#pragma once
// The worker of the engine respct.

#include "respct_engine.hpp"

#define BENCH_HAS_MEMORY 1

namespace bench {
using CurrentEngine = RespctEngine;
}

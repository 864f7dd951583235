// The engines of this build, and the only place that lists them: command line, options, statistics, help texts and tools are made from
// this list, CMake takes every source of src/engines. An engine is listed here once its conformance suite passes. The first one is what
// a new pool has where no engine is named.

#include "api/registry.hpp"

#include "engines/nvthreads/nvthreads_engine.hpp"
#include "engines/pmthreads/pmthreads_engine.hpp"
#include "engines/pronto/pronto_engine.hpp"
#include "engines/respct/respct_engine.hpp"
#include "engines/spht/spht_engine.hpp"

namespace stillpoint {

std::span<const EngineDriver> engine_drivers() noexcept
{
    static const EngineDriver drivers[] = {pmthreads::driver(), respct::driver(), pronto::driver(), spht::driver(), nvthreads::driver()};
    return drivers;
}

}  // namespace stillpoint

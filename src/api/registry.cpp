// The engines of this build, and the only place that lists them: command line, options, statistics, help texts and tools are made from
// this list, CMake takes every source of src/engines. An engine is listed here once its conformance suite passes. The first one is what
// a new pool has where no engine is named.

#include "api/registry.hpp"

#include <algorithm>

#include "engines/breeze/driver.hpp"
#include "engines/nvthreads/nvthreads_engine.hpp"
#include "engines/pmthreads/pmthreads_engine.hpp"
#include "engines/pronto/pronto_engine.hpp"
#include "engines/respct/respct_engine.hpp"
#include "engines/spht/spht_engine.hpp"

namespace stillpoint {

std::span<const EngineDriver> every_engine_driver() noexcept
{
    static const EngineDriver drivers[] = {pmthreads::driver(), respct::driver(),    pronto::driver(),
                                           spht::driver(),      nvthreads::driver(), breeze::driver()};
    return drivers;
}

std::span<const EngineDriver> engine_drivers() noexcept
{
    static const std::span<const EngineDriver> drivers = [] {
        const auto every = every_engine_driver();
        const auto end = std::ranges::find_if(every, [](const EngineDriver& driver) { return !driver.opened_by.empty(); });
        return every.first(static_cast<std::size_t>(end - every.begin()));
    }();
    return drivers;
}

}  // namespace stillpoint

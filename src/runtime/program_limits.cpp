#include "runtime/program_limits.hpp"

#include <atomic>

#include "os/go_modules.hpp"
#include "os/log.hpp"
#include "runtime/statistics.hpp"

namespace stillpoint {

void tell_limits_of_program() noexcept
{
    const os::GoModules modules = os::loaded_go_modules();
    statistics().go_modules.store(modules.count, std::memory_order_relaxed);
    static std::atomic<bool> told{false};
    if (modules.count != 0 && !told.exchange(true)) {
        os::log(
            os::Severity::warning,
            "{} has code of Go, which takes locks, makes system calls and ends without the C library: put sp_fase_begin and sp_fase_end "
            "around what it stores into durable memory, read files and sockets into ordinary memory and copy, otherwise the data may be lost "
            "or the reads fail; and call sp_checkpoint before main returns, otherwise that end is a crash (docs/guide/guarantees.md)",
            modules.first);
    }
}

}  // namespace stillpoint

#include "logs/shared_logs.hpp"

#include <thread>

namespace stillpoint::logs {

Result<void> SharedLogs::prepare(ChunkSpace& space, Medium& medium, std::uint64_t first_number, std::uint64_t run) noexcept
{
    const std::uint32_t count = std::clamp(std::thread::hardware_concurrency(), 1U, logs_max);
    for (std::uint32_t i = 0; i < count; ++i) {
        if (auto done = logs_[i].init(space, medium, first_number + i, run); !done) {
            return done;
        }
    }
    count_ = count;
    return {};
}

}  // namespace stillpoint::logs

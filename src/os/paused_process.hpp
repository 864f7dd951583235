#pragma once
// Stops another process for a while, as SIGSTOP does. A second process watches over it: should this one end, it lets the stopped one go on.

#include <cstdint>

#include "os/descriptor.hpp"

namespace stillpoint::os {

class PausedProcess {
public:
    PausedProcess() noexcept = default;
    ~PausedProcess() { go_on(); }
    PausedProcess(const PausedProcess&) = delete;
    PausedProcess& operator=(const PausedProcess&) = delete;

    /// Returns when every thread of `process` stands still, which is for `max_ns` at most. 0 or the errno: ESRCH, EPERM; EBUSY where it is
    /// stopped already, or does not come to a stop.
    [[nodiscard]] int pause(int process, std::uint64_t max_ns) noexcept;
    /// True while all threads stand still yet: no other process has let them go on since pause().
    [[nodiscard]] bool stands() const noexcept;
    void go_on() noexcept;

private:
    [[nodiscard]] int start_watch(std::uint64_t max_ns) noexcept;

    Descriptor process_;  ///< pidfd
    int id_ = 0;
    Descriptor watch_end_;  ///< closed: the watching process lets it go on
    int watcher_ = 0;
};

}  // namespace stillpoint::os

#pragma once
// Notices a debugger. What another process stores by ptrace or /proc/PID/mem goes through a page that is protected, without a fault: where
// written pages are found by their faults it is lost, and nothing else says so.

#include <cstdint>

#include "os/tracing_process.hpp"

namespace stillpoint {

/// Threads: the checkpoint thread.
class TracerWatch {
public:
    /// `advice`: what to do with this engine; a sentence.
    explicit TracerWatch(const char* advice) noexcept : advice_(advice) {}

    /// Outside of the stop: looks once a second at most, and says once which process traces this one.
    void look() noexcept;

private:
    const char* advice_;
    os::TracingProcess tracer_;
    std::uint64_t looked_ns_ = 0;
    bool told_ = false;
};

}  // namespace stillpoint

#include "runtime/tracer_watch.hpp"

#include "os/clock.hpp"
#include "os/log.hpp"

namespace stillpoint {

void TracerWatch::look() noexcept
{
    constexpr std::uint64_t pause_ns = 1'000'000'000;
    const std::uint64_t now_ns = os::monotonic_ns();
    if (told_ || (looked_ns_ != 0 && now_ns - looked_ns_ < pause_ns)) {
        return;
    }
    looked_ns_ = now_ns;
    const int tracer = tracer_.number();
    if (tracer == 0) {
        return;
    }
    told_ = true;
    os::log(os::Severity::warning,
            "process {} traces this one: what a debugger stores into durable memory (gdb: `set var`) is seen by the program, but may be "
            "lost at the next start. {} (docs/guide/guarantees.md)",
            tracer, advice_);
}

}  // namespace stillpoint

#include "engines/nvthreads/processes/control_area.hpp"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>

#include "core/canary.hpp"
#include "os/clock.hpp"

namespace stillpoint::nvthreads::processes {

Result<ControlArea*> make_control_area()
{
    void* const memory = mmap(nullptr, sizeof(ControlArea), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return fail(SP_E_NO_MEMORY, errno, "no shared memory for the threads' processes: {}", std::strerror(errno));
    }
    return static_cast<ControlArea*>(memory);  // Zeroes are its first value.
}

bool ControlArea::await_durable(std::uint64_t position, bool or_let_go, std::uint64_t deadline_ns) noexcept
{
    const auto is_there = [&] {
        return durable.load(std::memory_order_acquire) >= position || (or_let_go && let_go.load(std::memory_order_acquire) >= position);
    };
    while (!is_there() && has_failed.load(std::memory_order_acquire) == 0 && !is_removed(Canary::processes_unlock_wait)) {
        const std::uint64_t now_ns = os::monotonic_ns();
        if (now_ns >= deadline_ns) {
            return false;
        }
        std::uint64_t newest = wanted.load(std::memory_order_relaxed);
        bool is_news = false;
        while (newest < position && !(is_news = wanted.compare_exchange_weak(newest, position, std::memory_order_seq_cst))) {
        }
        if (is_news) {
            wanted_signal.fetch_add(1, std::memory_order_seq_cst);
            shared_wake(wanted_signal);
            ring.hurry();
        }
        const std::uint32_t seen = durable_signal.load(std::memory_order_seq_cst);
        if (!is_there()) {
            constexpr std::uint64_t look_again_ns = 100'000'000;
            const std::uint64_t left_ns = deadline_ns - now_ns;
            shared_wait(durable_signal, seen, left_ns < look_again_ns ? left_ns : look_again_ns);
        }
    }
    return true;
}

}  // namespace stillpoint::nvthreads::processes

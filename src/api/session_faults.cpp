#include "api/session_faults.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include "api/session.hpp"
#include "os/probes.hpp"
#include "runtime/session_state.hpp"

namespace stillpoint {

namespace {

/// By a session's number.
constinit std::array<std::atomic<Engine*>, sessions_max> fault_engines{};

}  // namespace

void set_fault_engine(unsigned number, Engine* engine) noexcept { fault_engines[number].store(engine, std::memory_order_release); }

bool session_handle_fault(void* address) noexcept
{
    const bool served = std::ranges::any_of(fault_engines, [address](const std::atomic<Engine*>& place) {
        Engine* const engine = place.load(std::memory_order_acquire);
        return engine != nullptr && engine->handle_fault(address);
    });
    if (served) {
        STILLPOINT_PROBE2(fault_served, reinterpret_cast<std::uintptr_t>(address), 0);
    }
    return served;
}

namespace {

bool lies_in_image(const Engine& engine, const void* address) noexcept
{
    return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(engine.image_base()) < engine.image_bytes();
}

}  // namespace

bool session_handle_lost_memory(void* address) noexcept
{
    for (const std::atomic<Engine*>& place : fault_engines) {
        Engine* const engine = place.load(std::memory_order_acquire);
        if (engine == nullptr) {
            continue;
        }
        if (engine->absorb_lost_page(address)) {
            return true;
        }
        if (lies_in_image(*engine, address)) {
            // The program's own memory: what stood there comes back from the pool only.
            end_process(fail(SP_E_IO, EIO,
                             "the memory at {} is gone (SIGBUS: a hardware error, or a poisoned page); durable memory is as it was at "
                             "epoch {}: start the program again",
                             address, engine->durable_epoch())
                            .value());
        }
    }
    return false;
}

bool session_needs_fault_handler() noexcept
{
    bool needed = false;
    for_each_session([&](const Session& session) { needed = needed || session.engine->needs_fault_handler(); });
    return needed;
}

}  // namespace stillpoint

#include "runtime/session_engine.hpp"

#include "runtime/session_state.hpp"

namespace stillpoint {

Engine* session_engine() noexcept
{
    Session* const session = open_session();
    return session != nullptr ? session->engine.get() : nullptr;
}

bool session_is_in_use() noexcept
{
    Session* const session = open_session();
    return session != nullptr && session->in_use.load(std::memory_order_acquire);
}

void session_prepare_kernel_write(void* address, std::size_t size) noexcept
{
    if (Engine* const engine = session_engine(); engine != nullptr) {
        engine->prepare_kernel_write(address, size);
    }
}

void session_note_kernel_write(void* address, std::size_t size) noexcept
{
    if (Engine* const engine = session_engine(); engine != nullptr) {
        engine->note_kernel_write(address, size);
    }
}

}  // namespace stillpoint

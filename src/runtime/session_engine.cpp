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
    bool found = false;
    for_each_session([&](const Session& session) { found = found || session.in_use.load(std::memory_order_acquire); });
    return found;
}

void session_prepare_kernel_write(void* address, std::size_t size) noexcept
{
    for_each_session([=](const Session& session) { session.engine->prepare_kernel_write(address, size); });
}

void session_note_kernel_write(void* address, std::size_t size) noexcept
{
    for_each_session([=](const Session& session) { session.engine->note_kernel_write(address, size); });
}

}  // namespace stillpoint

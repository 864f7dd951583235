#include "recording_session.hpp"

#include <cstdint>
#include <unistd.h>

#include "api/registry.hpp"
#include "api/session.hpp"
#include "runtime/engine.hpp"

namespace recording {
std::atomic<int> ends{0};
std::atomic<int> forks_in_parent{0};
std::atomic<int> forks_in_child{0};
std::atomic<int> threads_ended{0};
std::atomic<void*> prepared_address{nullptr};
std::atomic<std::size_t> prepared_bytes{0};
std::atomic<void*> noted_address{nullptr};
std::atomic<std::size_t> noted_bytes{0};
std::atomic<bool> open{false};
}  // namespace recording

namespace stillpoint {

void session_start_from_environment() noexcept {}

// Written where a parent can count it: the process is about to end.
void session_end() noexcept
{
    ++recording::ends;
    [[maybe_unused]] const auto written = write(STDOUT_FILENO, "E", 1);
}

void session_before_fork() noexcept {}
void session_after_fork_in_parent() noexcept { ++recording::forks_in_parent; }
void session_after_fork_in_child() noexcept { ++recording::forks_in_child; }
bool session_handle_fault(void*) noexcept { return false; }
bool session_needs_fault_handler() noexcept { return false; }

void session_prepare_kernel_write(void* address, std::size_t size) noexcept
{
    recording::prepared_address = address;
    recording::prepared_bytes = size;
}

void session_note_kernel_write(void* address, std::size_t size) noexcept
{
    recording::noted_address = address;
    recording::noted_bytes = size;
}

void session_thread_exit() noexcept { ++recording::threads_ended; }

bool session_is_in_use() noexcept { return recording::open; }

// Only compared with nullptr by the shims.
Engine* session_engine() noexcept
{
    static std::uintptr_t somewhere = 0;
    return recording::open ? reinterpret_cast<Engine*>(&somewhere) : nullptr;
}

/// Stands in for registry.cpp of the library, which would link the engines and the session.
std::span<const EngineDriver> engine_drivers() noexcept { return {}; }
std::span<const EngineDriver> every_engine_driver() noexcept { return {}; }

}  // namespace stillpoint

#pragma once
// The engines of the open sessions, for code that needs nothing else of them: the interposer and the calls of the kernel.

#include <cstddef>

namespace stillpoint {

class Engine;

/// The engine of the session that the calling thread acts on, or nullptr.
[[nodiscard]] Engine* session_engine() noexcept;

/// There is a session, and something of this process has used durable memory: its end must be recorded.
[[nodiscard]] bool session_is_in_use() noexcept;

/// As Engine::prepare_kernel_write and note_kernel_write, for the parts of the range that are a session's; without a session nothing.
void session_prepare_kernel_write(void* address, std::size_t size) noexcept;
void session_note_kernel_write(void* address, std::size_t size) noexcept;

}  // namespace stillpoint

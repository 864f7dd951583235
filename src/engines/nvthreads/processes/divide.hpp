#pragma once
// The start of threads=processes: the process that has opened the pool becomes the supervisor, and a copy of it goes on as the program.

#include <cstdint>
#include <optional>

#include "core/result.hpp"
#include "engines/nvthreads/fase_logs.hpp"
#include "runtime/engine.hpp"
#include "runtime/shadow.hpp"

namespace stillpoint::nvthreads::processes {

struct DivisionParts {
    FaseLogs* logs;
    const Shadow* shadow;
    std::uint64_t image_bytes_max;
    std::uint64_t wait_max_ns;
    unsigned statistics_number;
};

/// Whether the program can be divided at all: main has not begun, and the volatile heap is shared. Errors: unsupported.
[[nodiscard]] Result<void> check_divisible();

/// In the program's process: nothing, and main is to begin. In this one: the program's end, when it has come.
/// Errors: no_memory; unsupported.
[[nodiscard]] Result<std::optional<ProgramEnd>> divide(const DivisionParts& parts);

/// For the engine's copy in the program's processes.
[[nodiscard]] bool is_program() noexcept;
[[nodiscard]] Result<void> wait_durable_in_program(std::uint64_t deadline_ns) noexcept;
void open_pages_in_program(const void* address, std::size_t size) noexcept;

}  // namespace stillpoint::nvthreads::processes

#pragma once
// Which parts of the program the compiler pass has instrumented: the records of nvhooks_abi.h in the program and in the
// libraries it was started with. One that dlopen brings later is not examined: verify_marks finds what it misses.

#include <cstdint>

#include "core/result.hpp"

namespace stillpoint::pmthreads {

/// How many translation units mark what they write, in line or by calls. Reads and checks every record. Start-up
/// only: reads files. Errors: unsupported: a record that this library cannot serve (another ABI, another card size,
/// damaged), naming the object and its source; or no unit that marks, so that the tracker `hooks` would see nothing.
[[nodiscard]] Result<std::uint64_t> count_marking_units();

}  // namespace stillpoint::pmthreads

#pragma once
// The card tables of nvhooks_abi.h: one byte for each line of the window of durable addresses, and one for each page, at addresses that
// instrumented code has as constants.

#include <cstddef>

#include "core/result.hpp"

namespace stillpoint::os {

/// Reserves the addresses of the tables, once in a process, and makes the cards of [address, + size_bytes) accessible. They stay
/// so until the process ends, because instrumented code may mark at any time; all others are of no use to it, and would cost
/// instruments that search all memory (a leak check) minutes. Private memory: a child made by fork marks its own copy, to no effect.
/// Pages come as they are marked: one for each 256 KiB of durable memory that is written, and one for each 16 MiB.
/// Errors: window_taken (something else lies there), no_memory.
[[nodiscard]] Result<void> map_cards(const void* address, std::size_t size_bytes);

}  // namespace stillpoint::os

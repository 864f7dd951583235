#pragma once
// The card table of nvhooks_abi.h: one byte for each 4 KiB of the window of durable addresses, at the address that
// instrumented code has as a constant.

#include "core/result.hpp"

namespace stillpoint::os {

/// Maps the table, once in a process; it stays until the process ends, because instrumented code may
/// mark at any time. Private memory: a child made by fork marks its own copy, to no effect.
/// Pages come as they are marked: one for each 16 MiB of durable memory that is written.
/// Errors: window_taken (something else lies there), no_memory.
[[nodiscard]] Result<void> map_card_table();

}  // namespace stillpoint::os

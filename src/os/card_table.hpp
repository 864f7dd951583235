#pragma once
// The card tables of nvhooks_abi.h: one byte for each line of the window of durable addresses, and one for each page, at addresses that
// instrumented code has as constants.

#include "core/result.hpp"

namespace stillpoint::os {

/// Maps the tables, once in a process; they stay until the process ends, because instrumented code may
/// mark at any time. Private memory: a child made by fork marks its own copy, to no effect.
/// Pages come as they are marked: one for each 256 KiB of durable memory that is written, and one for each 16 MiB.
/// Errors: window_taken (something else lies there), no_memory.
[[nodiscard]] Result<void> map_card_table();

}  // namespace stillpoint::os

#pragma once
// The description of a durable address, in the user's words: for messages.

#include <cstddef>
#include <cstdint>

namespace stillpoint {

struct DurablePlace {
    std::size_t block_bytes = 0;        ///< of the heap block that holds it; 0: no live block does
    std::uint64_t block_offset = 0;     ///< of the address in that block
    char handle[80] = "";               ///< of the named object that the block is; "": it has no name
};

/// Takes the lock of the directory: not in a stop, and not while a lock of the runtime is held.
[[nodiscard]] DurablePlace find_durable_place(const void* address) noexcept;

}  // namespace stillpoint

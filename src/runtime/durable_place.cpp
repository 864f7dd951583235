#include "runtime/durable_place.hpp"

#include <mutex>

#include "runtime/session_state.hpp"

namespace stillpoint {

DurablePlace find_durable_place(const void* address) noexcept
{
    DurablePlace place;
    Session* const session = session_of(address);
    if (session == nullptr) {
        return place;
    }
    const Heap::Block block = session->heap->find_block(address);
    if (block.begin == nullptr) {
        return place;
    }
    place.block_bytes = block.usable_bytes;
    place.block_offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - block.begin);
    const std::lock_guard guard(session->directory_lock);
    if (const auto entry = session->directory->find_by_address(reinterpret_cast<std::uintptr_t>(block.begin))) {
        place.handle[entry->handle.copy(place.handle, sizeof place.handle - 1)] = '\0';
    }
    return place;
}

}  // namespace stillpoint

#pragma once
// Named objects of a program that runs without a pool, so that sp_root works anyway.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stillpoint {

struct VolatileRoot {
    void* address = nullptr;
    std::size_t size_bytes = 0;
};

/// Threads: any.
[[nodiscard]] VolatileRoot find_volatile_root(std::string_view handle) noexcept;
/// False: no memory. The handle must be new or is given another object.
bool put_volatile_root(std::string_view handle, VolatileRoot root) noexcept;
/// The object that was named; address nullptr if there was none.
VolatileRoot erase_volatile_root(std::string_view handle) noexcept;
/// False: no object at that address has a name. A few loads, no lock.
[[nodiscard]] bool may_have_volatile_name(const void* address) noexcept;
/// Forgets the name of an object that is freed.
void forget_volatile_root_of(const void* address) noexcept;
/// The object that was at `from` was moved or resized: its name goes with it. Address nullptr: it was freed.
void move_volatile_root(std::uintptr_t from, VolatileRoot to) noexcept;

}  // namespace stillpoint

#pragma once
// Named objects of a program that runs without a pool, so that sp_root works all the same.

#include <cstddef>
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
/// Forgets the name of an object that is freed.
void forget_volatile_root_of(const void* address) noexcept;

}  // namespace stillpoint

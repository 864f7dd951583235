#pragma once
// Durable memory of an application, found again by its name after a restart.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "../engines/engine.hpp"

namespace bench {

/// An array of `count` T behind a name, zeroed when it is made, on a cache line of its own. After a restart the same array; where it
/// was made for another count (other threads, another size of input), a new one takes its place and the old one is free.
/// T may own nothing: it would not be freed with the old array.
template <MemoryEngine E, class T>
[[nodiscard]] T* kept_array(const char* name, std::size_t count)
{
    struct Kept {
        typename E::Mutex mutex;
        typename E::template Durable<void*> array;
        typename E::template Durable<std::uint64_t> size_bytes;
    };
    constexpr std::size_t line_bytes = 64;
    const std::size_t size_bytes = (count * sizeof(T) + line_bytes - 1) / line_bytes * line_bytes;
    Kept* const kept = E::template named<Kept>(name);
    typename E::template Operation<1> operation;
    operation.lock(kept->mutex);
    if (kept->array == nullptr || kept->size_bytes != size_bytes) {
        if (kept->array != nullptr) {
            E::deallocate(kept->array);
        }
        kept->array = static_cast<void*>(E::template make_array<T>(count));
        kept->size_bytes = size_bytes;
    }
    return static_cast<T*>(static_cast<void*>(kept->array));
}

/// Fills durable memory that `mutex` guards with one byte, in operations of 64 KiB.
template <MemoryEngine E>
void refill(typename E::Mutex& mutex, void* block, std::size_t size_bytes, int byte = 0)
{
    constexpr std::size_t step_bytes = 64 << 10;
    auto* bytes = static_cast<std::byte*>(block);
    for (std::size_t at = 0; at < size_bytes; at += step_bytes) {
        const std::size_t step = std::min(step_bytes, size_bytes - at);
        typename E::template Operation<1> operation;
        operation.lock(mutex);
        E::about_to_write(bytes + at, step);
        std::memset(bytes + at, byte, step);
    }
}

}  // namespace bench

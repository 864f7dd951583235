#pragma once
// An allocator of the standard library's containers over an engine's memory.

#include <cstddef>
#include <type_traits>

#include "engine.hpp"

namespace bench {

/// Used inside an operation of the engine only: so is every function of a container that may allocate.
template <class T, MemoryEngine E>
class EngineAllocator {
public:
    using value_type = T;
    using is_always_equal = std::true_type;
    using propagate_on_container_move_assignment = std::true_type;

    EngineAllocator() noexcept = default;
    template <class Other>
    EngineAllocator(const EngineAllocator<Other, E>&) noexcept  // NOLINT: containers convert it to that of their nodes
    {
    }

    /// The engine's allocate() ends the program where there is no memory; count * sizeof(T) was checked by the container.
    [[nodiscard]] T* allocate(std::size_t count)
    {
        constexpr std::size_t usual_alignment_bytes = 16;
        if constexpr (alignof(T) > usual_alignment_bytes) {
            return static_cast<T*>(E::allocate_aligned(alignof(T), count * sizeof(T)));
        } else {
            return static_cast<T*>(E::allocate(count * sizeof(T)));
        }
    }
    void deallocate(T* block, std::size_t) noexcept { E::deallocate(block); }

    template <class Other>
    bool operator==(const EngineAllocator<Other, E>&) const noexcept
    {
        return true;
    }
};

}  // namespace bench

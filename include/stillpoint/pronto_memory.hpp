#pragma once
// Durable memory for containers inside durable objects: an allocator, and a resource for std::pmr. The part of pronto.hpp that knows
// memory: include that.

#if __cplusplus < 202002L
#error "Stillpoint's C++ headers need C++20: compile with -std=c++20 or a later standard"
#else

#include <cstddef>
#include <limits>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "stillpoint/memory.hpp"
#include "stillpoint/stillpoint.h"

namespace stillpoint::pronto {

using stillpoint::durable_resource;
using stillpoint::memory_resource;
using stillpoint::pool_scope;

namespace detail {
using stillpoint::detail::allocate_durable;
using stillpoint::detail::DurableResource;
}  // namespace detail

/// Durable memory, by sp_malloc. Meets the standard's requirements for an allocator; it has no state, and all are equal. A type of its
/// own, not stillpoint::allocator: its name is a part of the names by which pools know their classes.
/// Of a container outside durable objects the blocks are leaked in a crash.
/// Threads: any. Errors: std::bad_alloc.
template <class T>
class allocator {
public:
    using value_type = T;

    allocator() noexcept = default;
    template <class Other>
    allocator(const allocator<Other>&) noexcept  // NOLINT(google-explicit-constructor): the requirements ask for it
    {
    }

    [[nodiscard]] T* allocate(std::size_t count)
    {
        if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) {
            throw std::bad_array_new_length();
        }
        return static_cast<T*>(detail::allocate_durable(count * sizeof(T), alignof(T)));
    }
    void deallocate(T* block, std::size_t) noexcept { sp_free(block); }

    template <class Other>
    [[nodiscard]] bool operator==(const allocator<Other>&) const noexcept
    {
        return true;
    }
};

/// A string and a vector whose characters and elements are durable, for members of durable objects.
using string = std::basic_string<char, std::char_traits<char>, allocator<char>>;
template <class T>
using vector = std::vector<T, allocator<T>>;
[[nodiscard]] inline bool operator==(const string& one, const std::string& other) noexcept { return one == std::string_view(other); }

}  // namespace stillpoint::pronto

#endif

#pragma once
// Stores, allocations and digests of programs over typed objects.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "arch/checksum.hpp"
#include "stillpoint/breeze.h"
#include "stillpoint/stillpoint.h"
#include "typed/typed_program.hpp"

namespace stillpoint::explorer {

inline constexpr std::uint64_t objects_max = 1000;  ///< more than any of these programs makes

[[noreturn]] inline void refused(const char* what) { throw std::runtime_error(std::string(what) + ": " + sp_last_error()); }

template <class T>
void set(T& place, T value)
{
    if (nvm_log(&place, sizeof place) != SP_OK) {
        refused("a store is refused");
    }
    place = value;
}

/// Before stores to all of the places.
template <class... T>
void log_together(const T&... places)
{
    if (((nvm_log_ahead(&places, sizeof places) != SP_OK) || ...)) {
        refused("stores are refused");
    }
    nvm_log_wait();
}

template <class T>
T* make(NVM_POOL* pool, std::uint32_t type, std::size_t bytes = sizeof(T))
{
    auto* const made = static_cast<T*>(nvm_alloc(pool, type, bytes));
    if (made == nullptr) {
        refused("no object");
    }
    return made;
}

/// A digest that refuses to go on forever.
class BoundedDigest {
public:
    void add(std::uint64_t value)
    {
        if (++count_ > 4 * objects_max) {
            throw std::runtime_error("objects have no end");
        }
        sum_ = mix64(sum_ + 1, value);
    }
    [[nodiscard]] std::uint64_t value() const noexcept { return sum_ | 1; }  // 0 is what does not exist.

private:
    std::uint64_t sum_ = 0;
    std::uint64_t count_ = 0;
};

// The programs, each in the file of its name.
enum class ListsKind : std::uint8_t { whole, divided, growing, reusing };  ///< growing: by several nodes at a time; reusing: freed by hand
[[nodiscard]] std::unique_ptr<TypedProgram> make_lists(ListsKind kind);
[[nodiscard]] std::unique_ptr<TypedProgram> make_tree();
[[nodiscard]] std::unique_ptr<TypedProgram> make_rings();
[[nodiscard]] std::unique_ptr<TypedProgram> make_shapes();

}  // namespace stillpoint::explorer

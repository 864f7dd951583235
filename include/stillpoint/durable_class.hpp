#pragma once
// A mark in the debug information of C++ programs; part of the headers for C++, which include it.

#if __cplusplus < 202002L
#error "Stillpoint's C++ headers need C++20: compile with -std=c++20 or a later standard"
#else

#include <cstdint>

namespace stillpoint::detail {

/// Instances of it stand in a program's debug information for the classes whose objects it asks for by their names: so `stillpoint run`
/// knows whose members are compared with those that the pool keeps.
template <class T>
struct durable_class {
    [[nodiscard]] static T* at(std::uintptr_t address) noexcept { return reinterpret_cast<T*>(address); }
};

}  // namespace stillpoint::detail

#endif

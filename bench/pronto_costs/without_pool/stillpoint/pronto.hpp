#pragma once
// A stand-in for the public header of that name: include/stillpoint/durable/*.hpp, unchanged, become classes in ordinary memory of a
// program without Stillpoint. Operations and read guards do nothing; layout, hashes and the containers' own locks stay. A program
// that finds this header first links no library.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "stillpoint/durable_class.hpp"
#include "stillpoint/pronto_class.hpp"
#include "stillpoint/pronto_lock.hpp"

namespace stillpoint::pronto {

template <class T>
class allocator {
public:
    using value_type = T;

    allocator() noexcept = default;
    template <class Other>
    allocator(const allocator<Other>&) noexcept  // NOLINT(google-explicit-constructor): the requirements ask for it
    {
    }
    [[nodiscard]] T* allocate(std::size_t count) { return std::allocator<T>().allocate(count); }
    void deallocate(T* block, std::size_t count) noexcept { std::allocator<T>().deallocate(block, count); }

    template <class Other>
    [[nodiscard]] bool operator==(const allocator<Other>&) const noexcept
    {
        return true;
    }
};
using string = std::basic_string<char, std::char_traits<char>, allocator<char>>;
template <class T>
using vector = std::vector<T, allocator<T>>;

class [[maybe_unused]] operation {
public:
    void commit() noexcept {}
    void commit_early() noexcept {}
};
class [[maybe_unused]] read_guard {};
class [[maybe_unused]] without_waiting {};

template <class Self>
class object : private stillpoint::detail::durable_class<Self> {
protected:
    template <auto Method, class... Arguments>
    operation op_begin(const Arguments&...) noexcept
    {
        return {};
    }
    template <auto Method, class... ArgumentsAndWork>
    decltype(auto) run(ArgumentsAndWork&&... all)
    {
        return std::get<sizeof...(all) - 1>(std::forward_as_tuple(std::forward<ArgumentsAndWork>(all)...))();
    }
    read_guard read() const noexcept { return {}; }
    lock_hold hold(object_lock& lock) const noexcept { return {lock, run_number()}; }
    shared_hold hold_shared(object_lock& lock) const noexcept { return {lock, run_number()}; }
    [[nodiscard]] std::uint32_t run_number() const noexcept { return 1; }
};

/// Makes one each time, which lives as long as the program.
template <class T, class... Arguments>
[[nodiscard]] T& get_object(const std::string&, const Arguments&... arguments)
{
    return *new T(arguments...);
}
template <class T>
[[nodiscard]] T* find_object(const std::string&)
{
    return nullptr;
}
inline bool delete_object(const std::string&) { return false; }

}  // namespace stillpoint::pronto

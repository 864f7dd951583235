#pragma once
// The operations that an instruction set must supply for bytes to become durable. x86_64.hpp and aarch64.hpp model it, and
// the counting one of the tests; nothing above src/arch names an instruction.

#include <concepts>
#include <cstddef>
#include <string_view>

namespace stillpoint::arch {

template <class A>
concept Arch = requires(A& a, const void* line, void* to, const void* from, std::size_t size) {
    { A::line_bytes } -> std::convertible_to<std::size_t>;
    /// Starts the write back of one line; may return early.
    { a.write_back(line) } noexcept;
    /// Returns once every earlier write back and non-temporal copy of this thread is durable.
    { a.fence() } noexcept;
    /// Copies past the caches: durable at the next fence() without a write back by the caller.
    /// `to` and `size` are multiples of line_bytes; `from` has any alignment. Unordered until fence().
    { a.copy_nontemporal(to, from, size) } noexcept;
    /// The instruction that write_back() uses, for messages. Static text.
    { a.write_back_name() } noexcept -> std::convertible_to<std::string_view>;
};

}  // namespace stillpoint::arch

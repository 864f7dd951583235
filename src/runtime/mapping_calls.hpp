#pragma once
// Calls of the program that would map over durable memory, take it away, or hide stores from the tracker. They are refused with EPERM, as
// the kernel refuses them for sealed memory, and with one message for each kind of call. The card table, which lies below the window,
// counts as durable memory. Any thread; async-signal-safe; no malloc.

#include <cstddef>
#include <cstdint>
#include <sys/uio.h>

#include "core/store_marks.hpp"
#include "core/units.hpp"

namespace stillpoint {

enum class MappingCall : std::uint8_t { map, unmap, remap, protect, advise, attach_shared, seal };

namespace mapping_calls {

/// True: durable memory of an open pool lies in that range, in part or whole, and the call is not the library's own. Tells the user, and
/// sets errno.
[[nodiscard, gnu::cold]] bool refuses(MappingCall call, const void* address, std::size_t size) noexcept;
[[nodiscard, gnu::cold]] bool refuses_fixed(const void* address, std::size_t size, int flags) noexcept;
[[nodiscard, gnu::cold]] bool refuses_advice(const void* address, std::size_t size, int advice) noexcept;

/// The range meets the window or the card table.
[[nodiscard, gnu::always_inline]] inline bool is_near(const void* address, std::size_t size) noexcept
{
    constexpr std::uintptr_t first = store_marks::table_address;
    constexpr std::uintptr_t end = window_base + window_bytes;
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    return begin < end && (begin >= first || size > first - begin);
}

}  // namespace mapping_calls

[[nodiscard, gnu::always_inline]] inline bool refuses_unmapping(const void* address, std::size_t size) noexcept
{
    return mapping_calls::is_near(address, size) && mapping_calls::refuses(MappingCall::unmap, address, size);
}
[[nodiscard, gnu::always_inline]] inline bool refuses_protection(const void* address, std::size_t size) noexcept
{
    return mapping_calls::is_near(address, size) && mapping_calls::refuses(MappingCall::protect, address, size);
}
/// The kernel chooses other addresses, or refuses by itself, unless the flags say that what lies there goes.
[[nodiscard, gnu::always_inline]] inline bool refuses_mapping(const void* address, std::size_t size, int flags) noexcept
{
    return mapping_calls::is_near(address, size) && mapping_calls::refuses_fixed(address, size, flags);
}
/// Advice that leaves the contents alone, and stores visible, is welcome.
[[nodiscard, gnu::always_inline]] inline bool refuses_advice(const void* address, std::size_t size, int advice) noexcept
{
    return mapping_calls::is_near(address, size) && mapping_calls::refuses_advice(address, size, advice);
}
[[nodiscard]] bool refuses_remapping(const void* from, std::size_t from_size, std::size_t to_size, int flags, const void* to) noexcept;
[[nodiscard]] bool refuses_remapping_of_file_pages(const void* address, std::size_t size) noexcept;
[[nodiscard]] bool refuses_advice(const iovec* parts, std::size_t count, int advice) noexcept;
[[nodiscard]] bool refuses_attaching(int segment, const void* address, int flags) noexcept;

/// A system call by its number, as by the function of libc.
[[nodiscard]] bool refuses_system_call(long number, const long (&arguments)[6]) noexcept;

}  // namespace stillpoint

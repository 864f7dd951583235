#pragma once
// System calls that go through no function of libc: for shims that run before the dynamic loader can be asked for one, inside an
// allocator's or a sanitizer's first steps.

#include <cerrno>
#include <type_traits>

namespace stillpoint::os {

/// The kernel's own result: -errno where the call failed.
[[nodiscard]] inline long direct_call_result(long number, long a, long b, long c, long d, long e, long f) noexcept
{
#if defined(__x86_64__)
    long result = number;
    register long fourth asm("r10") = d;
    register long fifth asm("r8") = e;
    register long sixth asm("r9") = f;
    asm volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth) : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long of_call asm("x8") = number;
    register long first asm("x0") = a;
    register long second asm("x1") = b;
    register long third asm("x2") = c;
    register long fourth asm("x3") = d;
    register long fifth asm("x4") = e;
    register long sixth asm("x5") = f;
    asm volatile("svc #0" : "+r"(first) : "r"(of_call), "r"(second), "r"(third), "r"(fourth), "r"(fifth), "r"(sixth) : "memory");
    return first;
#else
#error "system calls of this architecture"
#endif
}

template <class T>
[[nodiscard]] long as_argument([[maybe_unused]] T value) noexcept
{
    if constexpr (std::is_null_pointer_v<T>) {
        return 0;
    } else if constexpr (std::is_pointer_v<T>) {
        return reinterpret_cast<long>(value);
    } else {
        return static_cast<long>(value);
    }
}

/// As libc's syscall: -1 and errno where the call failed.
template <class... Arguments>
long direct_call(long number, Arguments... arguments) noexcept
{
    const long passed[6] = {as_argument(arguments)...};
    const long result = direct_call_result(number, passed[0], passed[1], passed[2], passed[3], passed[4], passed[5]);
    if (result < 0 && result >= -4095) {
        errno = static_cast<int>(-result);
        return -1;
    }
    return result;
}

}  // namespace stillpoint::os

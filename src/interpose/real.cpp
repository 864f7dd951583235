#include "interpose/real.hpp"

#include <cstring>
#include <dlfcn.h>
#include <sys/syscall.h>
#include <sysexits.h>

#include "os/log.hpp"
#include "runtime/program_fit.hpp"

namespace stillpoint::real {

constinit Addresses addresses{};

namespace {

/// Ends the program: a lock that cannot be taken for real must not seem to be taken.
[[noreturn]] void end_for_missing(const char* name) noexcept
{
    os::log(os::Severity::error, "the C library has no function {}; Stillpoint needs glibc 2.34 or newer", name);
    while (true) {
        syscall(SYS_exit_group, EX_SOFTWARE);
    }
}

void* look_up_from(void* where, const char* name, const char* version) noexcept
{
    void* const found = version[0] == '\0' ? nullptr : dlvsym(where, name, version);
    return found != nullptr ? found : dlsym(where, name);  // Architectures younger than that version.
}

bool is_own(const void* function) noexcept
{
    Dl_info of_function{};
    Dl_info own{};
    return dladdr(function, &of_function) != 0 && dladdr(&addresses, &own) != 0 && of_function.dli_fbase == own.dli_fbase;
}

/// The function that the program would get without this library. Where this one was loaded late, by dlopen or for another
/// library, the C library is not the next one but an earlier one.
void* look_up(const char* name, const char* version) noexcept
{
    if (void* const next = look_up_from(RTLD_NEXT, name, version); next != nullptr) {
        return next;
    }
    void* const earlier = look_up_from(RTLD_DEFAULT, name, version);
    if (earlier == nullptr || is_own(earlier)) {
        end_for_missing(name);
    }
    note_locks_are_unseen();
    return earlier;
}

}  // namespace

void resolve() noexcept
{
#define INTERCEPTED(name, version) addresses.name.store(look_up(#name, version), std::memory_order_relaxed);
#include "interpose/intercepted.inc"
#undef INTERCEPTED
}

void replace(std::span<const session_process::ReplacedCall> calls) noexcept
{
    for (const auto& [name, function] : calls) {
#define INTERCEPTED(of_libc, version)                                                                                                      \
    if (std::strcmp(name, #of_libc) == 0) {                                                                                                \
        addresses.of_libc.store(function, std::memory_order_relaxed);                                                                      \
    }
#include "interpose/intercepted.inc"
#undef INTERCEPTED
    }
}

}  // namespace stillpoint::real

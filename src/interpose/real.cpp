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

bool lie_in_one_module(const void* one, const void* other) noexcept
{
    Dl_info of_one{};
    Dl_info of_other{};
    return dladdr(one, &of_one) != 0 && dladdr(other, &of_other) != 0 && of_one.dli_fbase == of_other.dli_fbase;
}

/// The function that the program would get without this library. Where this one was loaded late, for another library, the C library is
/// not the next one but an earlier one.
void* look_up(const char* name, const char* version) noexcept
{
    if (void* const next = look_up_from(RTLD_NEXT, name, version); next != nullptr) {
        return next;
    }
    void* const earlier = look_up_from(RTLD_DEFAULT, name, version);
    if (earlier == nullptr || lie_in_one_module(earlier, &addresses)) {
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
    // Where dlopen has brought this library, the C library is the next one too, since this one needs it: and the program calls that one's
    // functions. Another library that is found first may call these here.
    const void* const called = dlsym(RTLD_DEFAULT, "pthread_mutex_lock");
    if (called != nullptr && lie_in_one_module(called, reinterpret_cast<const void*>(REAL(pthread_mutex_lock)))) {
        note_locks_are_unseen();
    }
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

#include "interpose/real.hpp"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <sysexits.h>

#include "os/log.hpp"

namespace stillpoint::real {

constinit Addresses addresses{};

namespace {

/// Ends the program: a lock that cannot be taken for real must not seem to be taken.
[[noreturn]] void end_for_missing(const char* name) noexcept
{
    os::log(os::Severity::error,
            "the C library has no function {}; Stillpoint needs glibc 2.34 or newer", name);
    while (true) {
        syscall(SYS_exit_group, EX_SOFTWARE);
    }
}

void* look_up(const char* name, const char* version) noexcept
{
    void* found = version[0] == '\0' ? nullptr : dlvsym(RTLD_NEXT, name, version);
    if (found == nullptr) {
        found = dlsym(RTLD_NEXT, name);  // Architectures younger than that version.
    }
    if (found == nullptr) {
        end_for_missing(name);
    }
    return found;
}

}  // namespace

void resolve() noexcept
{
#define INTERCEPTED(name, version) \
    addresses.name.store(look_up(#name, version), std::memory_order_relaxed);
#include "interpose/intercepted.inc"
#undef INTERCEPTED
}

}  // namespace stillpoint::real

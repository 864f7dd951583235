#include "arch/rtm.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace stillpoint::arch {

#if defined(__x86_64__)

namespace {

/// CPUID leaf 7, subleaf 0.
bool has_rtm() noexcept
{
    constexpr unsigned rtm_in_ebx = 1U << 11;
    constexpr unsigned always_aborts_in_edx = 1U << 11;
    unsigned eax = 0;
    unsigned ebx = 0;
    unsigned ecx = 0;
    unsigned edx = 0;
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ebx & rtm_in_ebx) != 0 && (edx & always_aborts_in_edx) == 0;
}

}  // namespace

bool Rtm::works() noexcept
{
    if (!has_rtm()) {
        return false;
    }
    // An interrupt or a page's first touch can stop one of them, not all.
    volatile unsigned stored = 0;
    for (unsigned tries = 1; tries <= 100; ++tries) {
        if (begin() == started) {
            stored = tries;
            end();
        }
        if (stored != 0) {
            return true;
        }
    }
    return false;
}

#else

bool Rtm::works() noexcept { return false; }

#endif

}  // namespace stillpoint::arch

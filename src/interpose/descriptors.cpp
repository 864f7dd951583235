// Closing and replacing descriptors. The runtime's own do not exist for the program: EBADF, and ranges go round them.

#include <cerrno>
#include <climits>
#include <unistd.h>

#include "interpose/real.hpp"
#include "os/own_descriptors.hpp"

namespace {

using stillpoint::os::is_own_descriptor;
using stillpoint::os::next_own_descriptor;

int refuse() noexcept
{
    errno = EBADF;
    return -1;
}

}  // namespace

SHIM int close(int file) { return is_own_descriptor(file) ? refuse() : REAL(close)(file); }

SHIM int dup2(int from, int to) noexcept { return is_own_descriptor(to) ? refuse() : REAL(dup2)(from, to); }

SHIM int dup3(int from, int to, int flags) noexcept { return is_own_descriptor(to) ? refuse() : REAL(dup3)(from, to, flags); }

SHIM int close_range(unsigned first, unsigned last, int flags) noexcept
{
    // The flags are the same for each piece: what CLOSE_RANGE_UNSHARE asks for is done by the first.
    while (first <= last && first <= static_cast<unsigned>(INT_MAX)) {
        const int own = next_own_descriptor(static_cast<int>(first));
        if (own < 0 || static_cast<unsigned>(own) > last) {
            break;
        }
        const auto stop = static_cast<unsigned>(own);
        if (stop > first) {
            if (const int result = REAL(close_range)(first, stop - 1, flags); result != 0) {
                return result;
            }
        }
        if (stop == last) {
            return 0;
        }
        first = stop + 1;
    }
    return REAL(close_range)(first, last, flags);
}

SHIM void closefrom(int first) noexcept
{
    first = first < 0 ? 0 : first;
    for (int own = next_own_descriptor(first); own >= 0; own = next_own_descriptor(first)) {
        if (own > first && REAL(close_range)(static_cast<unsigned>(first), static_cast<unsigned>(own) - 1, 0) != 0) {
            for (int file = first; file < own; ++file) {
                REAL(close)(file);  // Linux before 5.9.
            }
        }
        first = own + 1;
    }
    REAL(closefrom)(first);
}

#include <sysexits.h>

#include "api/session.hpp"

namespace stillpoint {

int exit_code_for(sp_error code) noexcept
{
    switch (code) {
    case SP_OK: return EX_OK;
    case SP_E_INVALID_ARGUMENT:
    case SP_E_HANDLE_MISSING:
    case SP_E_HANDLE_SIZE: return EX_USAGE;
    case SP_E_NOT_A_POOL:
    case SP_E_POOL_TRUNCATED:
    case SP_E_POOL_VERSION:
    case SP_E_POOL_ENGINE:
    case SP_E_POOL_CORRUPT:
    case SP_E_GLOBALS_CHANGED:
    case SP_E_LAYOUT:
    case SP_E_DIVERGED: return EX_DATAERR;
    case SP_E_POOL_MISSING:
    case SP_E_NOT_OPEN: return EX_NOINPUT;
    case SP_E_POOL_EXISTS:
    case SP_E_NO_SPACE:
    case SP_E_POOL_FULL: return EX_CANTCREAT;
    case SP_E_POOL_LOCKED:
    case SP_E_TIMED_OUT: return EX_TEMPFAIL;
    case SP_E_POOL_READ_ONLY: return EX_NOPERM;
    case SP_E_IO: return EX_IOERR;
    case SP_E_NO_MEMORY: return EX_OSERR;
    case SP_E_WINDOW_TAKEN:
    case SP_E_UNSUPPORTED: return EX_UNAVAILABLE;
    case SP_E_PROGRAM_REFUSED: return 126;  // as a shell: found, but cannot be run
    default: return EX_SOFTWARE;
    }
}

}  // namespace stillpoint

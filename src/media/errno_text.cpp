#include "media/errno_text.hpp"

#include <cerrno>
#include <cstring>

namespace stillpoint {

const char* describe_errno(int error) noexcept
{
    if (error == EFBIG) {
        return "the file would be larger than this process (ulimit -f) or the file system allows";
    }
    const char* const text = strerrordesc_np(error);
    return text != nullptr ? text : "unknown error";
}

sp_error code_of_errno(int error) noexcept
{
    switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return SP_E_NO_SPACE;
    case EACCES:
    case EPERM:
    case EROFS:
    case ETXTBSY: return SP_E_POOL_READ_ONLY;
    case EISDIR:
    case ENXIO:
    case ELOOP: return SP_E_NOT_A_POOL;
    case ENOENT:
    case ENOTDIR: return SP_E_POOL_MISSING;
    default: return SP_E_IO;
    }
}

const char* advice_for_errno(int error) noexcept
{
    return error == EFBIG ? "raise the limit of file sizes (ulimit -f)" : advice_for(code_of_errno(error));
}

const char* advice_for(sp_error code) noexcept
{
    switch (code) {
    case SP_E_NO_SPACE: return "free space on that file system, or choose another place";
    case SP_E_POOL_READ_ONLY: return "check the permissions of the file and its directory";
    case SP_E_POOL_MISSING: return "check the path";
    case SP_E_NOT_A_POOL: return "name a regular file";
    default: return "see the kernel's log (dmesg) for the device";
    }
}

}  // namespace stillpoint

#include "media/file_names.hpp"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "media/errno_text.hpp"
#include "media/open.hpp"
#include "os/descriptor.hpp"

namespace stillpoint {

namespace {

Result<void> exists(const std::string& path)
{
    return fail(SP_E_POOL_EXISTS, EEXIST, "{} exists already: choose another name, or remove it first", path);
}

/// errno, or 0.
int rename_to_free_name(const std::string& first_name, const std::string& path) noexcept
{
    if (renameat2(AT_FDCWD, first_name.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0) {
        return 0;
    }
    if (errno != EINVAL && errno != ENOSYS) {
        return errno;
    }
    // A file system that can only replace: a second name, and then only that.
    return link(first_name.c_str(), path.c_str()) == 0 && unlink(first_name.c_str()) == 0 ? 0 : errno;
}

Result<void> after_renaming(int error, const std::string& path)
{
    if (error == 0) {
        const std::size_t slash = path.rfind('/');
        const std::string parent = slash == std::string::npos ? "." : path.substr(0, slash + 1);
        const os::Descriptor folder{open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
        error = folder.valid() && fsync(folder.get()) == 0 ? 0 : errno;
    }
    if (error != 0) {
        return fail(SP_E_IO, error, "cannot name {}: {}", path, describe_errno(error));
    }
    return {};
}

}  // namespace

Result<void> check_name_is_free(const std::string& path)
{
    if (lies_in_no_file(path)) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "{}: only a file can be made here; `stillpoint copy FILE {}` brings it into Ceph afterwards",
                    path, path);
    }
    struct stat facts{};
    return lstat(path.c_str(), &facts) == 0 ? exists(path) : Result<void>{};
}

Result<void> give_name(const std::string& first_name, const std::string& path)
{
    const int error = rename_to_free_name(first_name, path);
    return error == EEXIST ? exists(path) : after_renaming(error, path);
}

Result<void> replace_by(const std::string& first_name, const std::string& path)
{
    return after_renaming(rename(first_name.c_str(), path.c_str()) == 0 ? 0 : errno, path);
}

}  // namespace stillpoint

#include "new_file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "os/descriptor.hpp"
#include "output.hpp"

namespace stillpoint::tool {

namespace {

Result<void> exists(const std::string& path)
{
    return fail(SP_E_POOL_EXISTS, EEXIST, "{} exists already: choose another name, or remove it first", path);
}

}  // namespace

NewFile::NewFile(const std::string& path) : path_(path), first_name_(text_of("{}.unfinished-{}", path, getpid())) {}

NewFile::~NewFile()
{
    if (!first_name_.empty()) {
        unlink(first_name_.c_str());
    }
}

Result<NewFile> NewFile::at(const std::string& path)
{
    struct stat facts{};
    if (lstat(path.c_str(), &facts) == 0) {
        return pass_on(exists(path).error());
    }
    return NewFile(path);
}

/// errno, or 0.
int NewFile::rename_to_path() const noexcept
{
    if (renameat2(AT_FDCWD, first_name_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE) == 0) {
        return 0;
    }
    if (errno != EINVAL && errno != ENOSYS) {
        return errno;
    }
    // A file system that can only replace: a second name, and then only that.
    return link(first_name_.c_str(), path_.c_str()) == 0 && unlink(first_name_.c_str()) == 0 ? 0 : errno;
}

Result<void> NewFile::publish() const
{
    int error = rename_to_path();
    if (error == EEXIST) {
        return exists(path_);
    }
    if (error == 0) {
        const std::filesystem::path parent = std::filesystem::path(path_).parent_path();
        const os::Descriptor folder{open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
        error = folder.valid() && fsync(folder.get()) == 0 ? 0 : errno;
    }
    if (error != 0) {
        return fail(SP_E_IO, error, "cannot name {}: {}", path_, std::strerror(error));
    }
    return {};
}

}  // namespace stillpoint::tool

#include "media/shared_folder.hpp"

#include <sys/stat.h>
#include <unistd.h>

namespace stillpoint {

namespace {

/// All zero where it cannot be seen.
struct stat facts_of_folder(const std::string& path)
{
    struct stat facts{};
    const std::size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    if (stat(folder.c_str(), &facts) != 0) {
        facts = {};
    }
    return facts;
}

}  // namespace

bool lies_in_shared_folder(const std::string& path)
{
    const struct stat folder = facts_of_folder(path);
    return (folder.st_mode & S_ISVTX) != 0 && (folder.st_mode & S_IWOTH) != 0;
}

Result<void> check_shared_file(const std::string& path, const struct stat& file)
{
    if (file.st_uid != geteuid() && file.st_uid != facts_of_folder(path).st_uid) {
        return fail(SP_E_POOL_READ_ONLY, 0,
                    "{} belongs to user {} and lies in a folder where every user may create files: it is not opened as user "
                    "{}. Run as its owner, or move it to a folder of your own",
                    path, file.st_uid, geteuid());
    }
    if (file.st_nlink > 1) {
        return fail(SP_E_POOL_READ_ONLY, 0,
                    "{} has {} names (hard links) and lies in a folder where every user may create files: it may be another "
                    "pool under a false name. Copy it to a folder of your own",
                    path, file.st_nlink);
    }
    return {};
}

}  // namespace stillpoint

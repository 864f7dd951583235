#pragma once
// Whether two paths name one file: links, other spellings and other mounts of it included.

#include <string>
#include <sys/stat.h>

namespace stillpoint::os {

/// False also where one of them cannot be examined.
[[nodiscard]] inline bool is_same_file(const std::string& one, const std::string& other) noexcept
{
    struct stat first{};
    struct stat second{};
    return stat(one.c_str(), &first) == 0 && stat(other.c_str(), &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

}  // namespace stillpoint::os

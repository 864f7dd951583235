#pragma once
// Folders where every user may create files and none may remove another's (/tmp, /dev/shm): a file there under
// a name that can be guessed may be any user's.

#include <string>

#include "core/result.hpp"

struct stat;

namespace stillpoint {

/// The folder of `path` is such a one. False where it cannot be seen.
[[nodiscard]] bool lies_in_shared_folder(const std::string& path);

/// ok if `file`, opened in such a folder without following a symbolic link, is this user's or the folder's owner's and
/// has no other name, by which it would be another user's file. Errors: pool_read_only.
[[nodiscard]] Result<void> check_shared_file(const std::string& path, const struct stat& file);

}  // namespace stillpoint

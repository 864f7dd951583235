#pragma once
// Folders where every user may make files and nobody may remove another's (/tmp, /dev/shm): what lies there under
// a name that somebody can guess may have been put there by anybody.

#include <string>

#include "core/result.hpp"

struct stat;

namespace stillpoint {

/// The folder of `path` is such a one. False where it cannot be seen.
[[nodiscard]] bool lies_in_shared_folder(const std::string& path);

/// ok if `file`, opened in such a folder without following a symbolic link, is this user's or the folder's owner's and
/// has no other name, by which it would be somebody else's file. Errors: pool_read_only.
[[nodiscard]] Result<void> check_shared_file(const std::string& path, const struct stat& file);

}  // namespace stillpoint

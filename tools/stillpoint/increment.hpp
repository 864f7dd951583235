#pragma once
// Increments: `stillpoint copy --incremental-since` makes them, `stillpoint restore` adds them to the copy that they follow.

#include <string>
#include <vector>

#include "command.hpp"
#include "media/increment_file.hpp"
#include "media/pool_file_copy.hpp"
#include "pool_access.hpp"

namespace stillpoint::tool {

struct IncrementArguments {
    std::string path;      ///< of the pool
    std::string new_path;  ///< of the increment; - is standard output
    std::string base;      ///< the copy or the increment that it follows
    PoolFileCopyOptions options;
    bool json = false;
    bool progress = false;
};

/// `stillpoint copy --incremental-since`. The exit code.
int copy_increment(const IncrementArguments& arguments);

/// Opens them, and verifies that each follows the one before: nothing is made of a chain that has a gap. "-" is standard input, which is
/// kept in `folder` meanwhile, without a name. Errors: as IncrementFile::open; invalid_argument (they do not follow each other).
[[nodiscard]] Result<std::vector<IncrementFile>> open_chain(const std::vector<std::string>& paths, const std::string& folder);

/// Adds them to `file`, which is a copy that was taken from `from`, before finish(). Every byte is verified. After a failure the file is
/// not to be used. Errors: invalid_argument (the first one does not follow `file`), pool_corrupt, no_space, no_memory, io.
[[nodiscard]] Result<void> add_increments(CopiedFile& file, const std::string& from, const std::vector<IncrementFile>& chain);

/// `stillpoint info` and `stillpoint check` of an increment. The exit code.
int tell_of_increment(const std::string& path, bool json);
int check_increment(const std::string& path, bool json);

}  // namespace stillpoint::tool

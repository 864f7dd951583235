#pragma once
// Copies the file of a pool, at rest or while a program has it open, to an unfinished copy (CopiedFile).

#include <cstdint>
#include <string>

#include "core/result.hpp"
#include "media/copied_file.hpp"

namespace stillpoint {

struct PoolFileCopyOptions {
    /// The program's writes are held no longer than this, after a wait of no more than this for those under way; at most
    /// hold_limit_ns_max.
    std::uint64_t hold_limit_ns = 2'000'000'000;
    /// Where the program's writes cannot be held, the process itself is (SIGSTOP).
    bool may_pause = false;
    CopyProgress progress = nullptr;
};
inline constexpr std::uint64_t hold_limit_ns_max = 4'500'000'000;  ///< less than half of hold_max_ns

struct PoolFileCopyFigures {
    bool was_in_use = false;
    int process = 0;                 ///< that had it open; 0: none, or not known
    unsigned passes = 0;
    std::uint64_t bytes_read = 0;
    std::uint64_t bytes_written = 0;
    std::uint64_t bytes_in_last_pass = 0;  ///< that were written in, or kept until after, the last one
    std::uint64_t held_ns = 0;       ///< writes of the program were held, or the process paused, for so long
    bool was_paused = false;
    std::uint64_t elapsed_ns = 0;
};

/// The name of a copy that is to be `path` and is not finished.
[[nodiscard]] std::string unfinished_name(const std::string& path);
/// The permissions of the file `path`, for its copy; 0600 where they cannot be seen.
[[nodiscard]] unsigned mode_of(const std::string& path);

/// Afterwards `copy` holds the bytes that `path` held at one moment at which recovery finds one consistent state. A pool at rest cannot be
/// opened for writing meanwhile. copy.finish() makes it durable.
/// Errors: pool_missing, not_a_pool (no regular file); pool_locked (the program's writes cannot be held, and may_pause is not set),
///   timed_out (not within the limit, several times), no_space, pool_read_only, io.
[[nodiscard]] Result<PoolFileCopyFigures> copy_pool_file(const std::string& path, CopiedFile& copy, const PoolFileCopyOptions& options);

}  // namespace stillpoint

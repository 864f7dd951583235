#pragma once
// Shared by `stillpoint copy` and `stillpoint restore`: a pool is copied to an unfinished file beside its name, verified, and named.

#include <string>

#include "command.hpp"
#include "json.hpp"
#include "media/pool_file_copy.hpp"
#include "pool_access.hpp"

namespace stillpoint::tool {

/// A line of progress where standard error is a terminal and `wanted`; nullptr otherwise.
[[nodiscard]] CopyProgress copy_progress_line(bool wanted);
void erase_copy_progress(CopyProgress progress);

struct VerifiedCopy {
    RecoveryReport recovery;
    std::string engine;
};

/// Finishes the copy at `unfinished`, and verifies it as `stillpoint check` does. One that is not sound is removed: what it was made
/// from is not. Errors: as finish() and verify().
[[nodiscard]] Result<VerifiedCopy> finish_and_verify(CopiedFile& copy, const std::string& unfinished, const std::string& from,
                                                     bool progress);

struct CopySize {
    std::uint64_t file_bytes;
    bool was_resumed;
};
[[nodiscard]] inline CopySize size_of(const CopiedFile& copy) noexcept { return {copy.size_bytes(), copy.was_resumed()}; }

/// How long the program did not write, if one had the pool open.
void print_how_it_was_held(const PoolFileCopyFigures& figures);
void add_figures(Json& json, const PoolFileCopyFigures& figures);

void print_copy_text(const std::string& path, const std::string& from, const CopySize& copy, const PoolFileCopyFigures& figures,
                     const VerifiedCopy& verified);
void print_copy_json(const std::string& path, const std::string& from, const CopySize& copy, const PoolFileCopyFigures& figures,
                     const VerifiedCopy& verified);

}  // namespace stillpoint::tool

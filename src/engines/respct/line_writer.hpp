#pragma once
// Hands the lines of a finished epoch to the medium: flush_modified of [ResPCT Figure 4], by a team of flusher threads [§5], while the next
// epoch runs.

#include <cstdint>
#include <span>
#include <vector>

#include "core/result.hpp"
#include "engines/respct/image_memory.hpp"
#include "engines/respct/thread.hpp"
#include "os/reserved_array.hpp"
#include "pool/pool.hpp"
#include "runtime/copy_team.hpp"

namespace stillpoint::respct {

/// Threads: the checkpoint thread.
class LineWriter {
public:
    /// `memory` and `pool` outlive the writer. Errors: no_memory.
    [[nodiscard]] Result<void> prepare(const ImageMemory& memory, const Pool& pool);
    [[nodiscard]] Result<void> start() { return team_.start(); }
    void stop() noexcept { team_.stop(); }
    void detach_after_fork() noexcept { team_.detach_after_fork(); }

    /// Lines that recovery changed before any thread had a list: part of the first epoch that is written.
    void add_recovered(std::uintptr_t line) { recovered_.push_back(line); }

    /// Writes back, or writes, all lines of the epoch. Durable with the fence (in place: it has been) or sync that follows. Returns
    /// how many lines there were. Errors: io, no_space.
    [[nodiscard]] Result<std::uint64_t> write(const Pool& pool, const CollectedLines& lines);

private:
    using Run = std::span<const std::uintptr_t>;

    void write_back(Medium& medium) noexcept;
    [[nodiscard]] Result<void> write_pages(const Pool& pool, bool all);
    [[nodiscard]] Result<void> write_staged(const Pool& pool, std::size_t pages);

    const ImageMemory* memory_ = nullptr;
    CopyTeam team_;
    std::vector<std::uintptr_t> recovered_;
    os::ReservedArray<Run> runs_;  ///< each of a limited number of lines
    std::uint64_t run_count_ = 0;
    os::ReservedBitmap pages_;  ///< to be written: by image page
    os::ReservedArray<std::byte> staging_;
    os::ReservedArray<std::uint64_t> staged_pages_;
};

}  // namespace stillpoint::respct

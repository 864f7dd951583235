#pragma once
// Makes and opens media by path: picks the kind that the file system can honestly give.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "media/medium.hpp"

namespace stillpoint {

struct MediumOptions {
    std::string path;
    Durability durability = Durability::power;
    /// Empty: `dax` where the file system grants MAP_SYNC, `memory` on tmpfs, otherwise `file`.
    std::optional<MediumKind> kind;
    // The `memory` kind only: what it emulates.
    std::uint32_t line_latency_ns = 0;      ///< per line written back [PMThreads §6.1: 100]
    std::uint32_t page_latency_ns = 0;      ///< per 4 KiB page written; 1000 in [NVthreads]
    std::uint32_t bandwidth_mb_per_s = 0;   ///< 0: no cap
    /// create_medium only: the file has no name before Medium::publish(), so that a creation that
    /// is killed leaves nothing behind. Where the file system has no unnamed files it has its name at once.
    bool publish_later = false;
    /// create_medium only: bytes inside the new file for which no room is taken on the disk until Medium::allocate(), before which nothing
    /// is written there.
    TwoFileRanges without_room;
    /// In place of them, where room is memory.
    TwoFileRanges without_room_in_memory;
    // Forcing, for tests and for machines where detection is wrong.
    bool disable_io_uring = false;
    bool disable_direct_io = false;
    std::optional<bool> caches_are_persistent;  ///< eADR / GPF; empty: detect
    // Pools in Ceph only.
    bool take_over = false;  ///< from an owner whose lease still runs
    std::uint32_t lease_ms = 10'000;  ///< from 1000
    std::uint32_t cluster_wait_max_ms = 0;  ///< a write that waits for longer ends the process; 0: none does
    std::uint64_t writer = 0;  ///< this process's number, if it has one: see Medium::claim()
    /// Calls that must fail (docs/internals/fault-injection.md); empty: as STILLPOINT_FAULT says.
    std::string faults;
};

/// Makes and opens media in the place of the file system, whatever the path: for a simulated machine.
class MediumOpener {
public:
    virtual ~MediumOpener() = default;
    /// Does what create_medium() does.
    [[nodiscard]] virtual Result<std::unique_ptr<Medium>> create(const MediumOptions& options, std::uint64_t size) = 0;
    /// Does what open_medium() does.
    [[nodiscard]] virtual Result<std::unique_ptr<Medium>> open(const MediumOptions& options) = 0;
    /// Does what replace_by() does (file_names.hpp).
    [[nodiscard]] virtual Result<void> replace(const std::string& first_name, const std::string& path);
    /// Does what file_number_of() does.
    [[nodiscard]] virtual std::uint64_t file_number(const std::string& path);
};

/// nullptr, as at the start: paths are paths. Not thread-safe: before a pool is opened.
void set_medium_opener(MediumOpener* opener) noexcept;

/// Creates the file with mode 0600, locks it, and allocates `size` bytes (multiple of
/// page_bytes), but for `without_room`. The name appears durably only with the first sync after this.
/// Errors: pool_exists, no_space (the file is removed again), pool_read_only (permission),
///   unsupported (a forced kind that this file system cannot give), io.
[[nodiscard]] Result<std::unique_ptr<Medium>> create_medium(const MediumOptions& options, std::uint64_t size);

/// The file, or the folder where it would be made, is memory (tmpfs, ramfs): what lies there ends with the machine. `run`, `info`
/// and `doctor` go by this. False where it cannot be seen.
[[nodiscard]] bool lies_in_memory(const std::string& path);

/// The error that create_medium would give for the folder; makes nothing. Errors: as create_medium, but not no_space.
[[nodiscard]] Result<void> check_creation(const MediumOptions& options);

/// Opens and locks an existing file for reading and writing.
/// Errors: pool_missing, pool_locked (names the process that has it where that can be seen),
///   pool_read_only, not_a_pool (not a regular file), unsupported, io.
[[nodiscard]] Result<std::unique_ptr<Medium>> open_medium(const MediumOptions& options);

/// Opens for reading only, with a shared lock if `lock`: `info` and `check`. Writes fail with
/// pool_read_only. Errors as open_medium.
[[nodiscard]] Result<std::unique_ptr<Medium>> open_medium_read_only(const MediumOptions& options, bool lock);

/// Gives the closed pool `first_name` the name `path`, durably, in place of the one that has it, in one step. Errors: io.
[[nodiscard]] Result<void> replace_pool(const std::string& first_name, const std::string& path);

/// The inode of the file, by which a copy that was put in its place is known; 0: it cannot be seen.
[[nodiscard]] std::uint64_t file_number_of(const std::string& path) noexcept;

/// Whether `path` names a pool that lies in no file (rados://CEPHPOOL/NAME): not a path that can be examined, resolved or linked.
[[nodiscard]] bool lies_in_no_file(std::string_view path) noexcept;

/// Called by a medium that finds, instead of acknowledging, why its process must end: another one owns its pool by now, or a cluster has
/// taken nothing for as long as it may. In the thread that used it.
using EndHandler = void (*)(const Failure& failure) noexcept;
/// nullptr, as at the start: the medium's failure is all. Before a pool is opened.
void set_end_handler(EndHandler handler) noexcept;
void tell_to_end(const Failure& failure) noexcept;

/// The program ends, and makes a last checkpoint: a medium that waits for its cluster says now that the end waits. Any thread.
void note_program_ends() noexcept;
[[nodiscard]] bool program_ends() noexcept;

/// The process that holds the exclusive lock on `path`, or 0: for messages and `stats`.
[[nodiscard]] int lock_holder_pid(const std::string& path);

}  // namespace stillpoint

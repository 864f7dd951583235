#pragma once
// The facts that `doctor` finds. Every probe tries the thing itself; a version number proves nothing.

#include <optional>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace stillpoint::tool {

struct CpuFacts {
    std::string write_back;          ///< the instruction that write back uses here
    bool persistent_caches = false;  ///< the platform says that caches survive a power cut (eADR, GPF)
};

struct KernelFacts {
    std::string release;
    bool async_protection = false;     ///< userfaultfd with WP_ASYNC: the tracker uffd needs it
    bool pagemap_scan = false;         ///< and this
    std::string tracker_obstacle;      ///< what is missing of the two, in words
    bool serves_system_calls = false;  ///< userfaultfd also for faults inside system calls (a privilege)
    bool membarrier = false;           ///< private expedited: the cheap lock hooks
    int io_uring_errno = 0;            ///< 0: usable
};

struct FileSystemFacts {
    std::string folder;              ///< resolved
    std::string type;                ///< "ext4", "tmpfs", ...
    std::string device;              ///< name of the block device, empty if there is none
    std::optional<bool> volatile_write_cache;  ///< of that device, as the kernel knows it
    bool in_memory = false;          ///< tmpfs, ramfs, or a disk made of RAM
    bool network = false;            ///< NFS, SMB, FUSE, 9p, ...: syncing is the server's word
    bool sync_disabled = false;      ///< mounted so that a sync does not reach the disk
    std::string sync_disabled_option;
    bool read_only = false;
    int create_errno = 0;            ///< 0: a file can be created there
    // Tried with that file: nothing is known of them where none can be made.
    std::optional<bool> allocates;   ///< fallocate reserves space
    std::optional<bool> locks;       ///< flock works
    std::optional<bool> direct;      ///< O_DIRECT writes of 4 KiB
    std::optional<bool> map_sync;    ///< MAP_SYNC: DAX
    std::uint64_t free_bytes = 0;
};

[[nodiscard]] CpuFacts probe_cpu();
[[nodiscard]] KernelFacts probe_kernel();
/// `path`: a folder, or a file whose folder is meant. Errors: pool_missing; pool_read_only (may not be read).
[[nodiscard]] Result<FileSystemFacts> probe_file_system(const std::string& path);

/// The conclusions from the facts.
struct Verdict {
    bool pool_possible = false;
    bool power = false;              ///< durability `power` can be promised
    std::string durability_reason;
    std::vector<std::string> conditions;  ///< what the promise rests on that cannot be seen from here
    std::string medium;
    std::string medium_reason;
    std::string tracker;
    std::string tracker_reason;
    std::string recovery;
    std::string recovery_reason;
};

[[nodiscard]] Verdict judge(const CpuFacts& cpu, const KernelFacts& kernel, const FileSystemFacts& files);

}  // namespace stillpoint::tool

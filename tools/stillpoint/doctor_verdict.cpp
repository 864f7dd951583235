// The conclusions of `doctor`: each promise with its reason, and nothing that is only hoped.

#include <cstring>

#include "doctor_facts.hpp"
#include "output.hpp"

namespace stillpoint::tool {

namespace {

/// Why no pool can be kept there; empty if one can.
std::string obstacle(const FileSystemFacts& files)
{
    if (files.read_only) {
        return "the file system is mounted read-only";
    }
    if (files.create_errno != 0) {
        return text_of("a file cannot be made in {}: {}", files.folder, std::strerror(files.create_errno));
    }
    if (!files.locks.value_or(false)) {
        return "the file system has no file locks (flock), so two programs could open one pool";
    }
    return {};
}

void judge_durability(Verdict& verdict, const FileSystemFacts& files)
{
    if (files.in_memory) {
        verdict.durability_reason = text_of("{} is memory: it ends with the machine", files.device.empty() ? files.type : files.device);
        return;
    }
    if (files.sync_disabled) {
        verdict.durability_reason = text_of("mounted with '{}': a sync does not reach the disk", files.sync_disabled_option);
        return;
    }
    verdict.power = true;
    if (files.map_sync.value_or(false)) {
        verdict.durability_reason = "the file system maps persistent memory directly; write backs reach it";
        verdict.conditions.emplace_back("the memory is persistent: the kernel says so, but a RAM disk that imitates it is not");
        return;
    }
    verdict.durability_reason = "every checkpoint ends with a sync, and the file system passes it on";
    if (files.network) {
        verdict.conditions.emplace_back("the server keeps what it has acknowledged as synced");
    } else if (files.device.empty()) {
        verdict.conditions.emplace_back("the storage under this file system honours a sync (this cannot be checked from here)");
    } else if (files.device.starts_with("loop") || files.device.starts_with("vd") || files.device.starts_with("xvd")) {
        verdict.conditions.emplace_back(text_of("the storage behind the virtual disk {} honours a flush", files.device));
    } else {
        verdict.conditions.emplace_back(text_of("the disk {} honours a flush", files.device));
    }
}

void judge_medium(Verdict& verdict, const CpuFacts& cpu, const KernelFacts& kernel, const FileSystemFacts& files)
{
    if (files.map_sync.value_or(false)) {
        verdict.medium = "dax";
        verdict.medium_reason = cpu.persistent_caches ? "stores and fences; caches are persistent, so nothing is written back"
                                                      : text_of("stores, {} and fences", cpu.write_back);
        return;
    }
    if (files.in_memory) {
        verdict.medium = "memory";
        verdict.medium_reason = "stores into a mapping of the file, which is memory already";
        return;
    }
    verdict.medium = "file";
    if (!verdict.power) {
        verdict.medium_reason = "pwritev into the page cache, which outlives the process";
        return;
    }
    const bool ring = kernel.io_uring_errno == 0;
    verdict.medium_reason = text_of("{}{}, then fdatasync", ring ? "io_uring" : "pwritev",
                                    files.direct.value_or(false) ? " with O_DIRECT" : " through the page cache");
}

void judge_tracker(Verdict& verdict, const KernelFacts& kernel)
{
    if (kernel.async_protection && kernel.pagemap_scan) {
        verdict.tracker = "uffd";
        verdict.tracker_reason = "the kernel notes written pages by itself (userfaultfd WP_ASYNC, PAGEMAP_SCAN)";
    } else {
        verdict.tracker = "mprotect";
        verdict.tracker_reason = "the first write to a page costs a signal, because " + kernel.tracker_obstacle;
    }
}

void judge_recovery(Verdict& verdict, const KernelFacts& kernel)
{
    if (verdict.tracker == "uffd" && kernel.serves_system_calls) {
        verdict.recovery = "lazy";
        verdict.recovery_reason = "pages are loaded when first touched, also by system calls";
        return;
    }
    verdict.recovery = "eager";
    verdict.recovery_reason = verdict.tracker == "uffd"
                                  ? "pages that a system call touches first could not be loaded: that needs a privilege (root, or "
                                    "vm.unprivileged_userfaultfd=1)"
                                  : "loading pages at their first touch needs the tracker uffd";
}

}  // namespace

Verdict judge(const CpuFacts& cpu, const KernelFacts& kernel, const FileSystemFacts& files)
{
    Verdict verdict;
    verdict.durability_reason = obstacle(files);
    verdict.pool_possible = verdict.durability_reason.empty();
    if (!verdict.pool_possible) {
        return verdict;
    }
    judge_durability(verdict, files);
    judge_medium(verdict, cpu, kernel, files);
    judge_tracker(verdict, kernel);
    judge_recovery(verdict, kernel);
    return verdict;
}

}  // namespace stillpoint::tool

// `stillpoint doctor`: what this machine and file system can honestly promise, and why.

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "command.hpp"
#include "doctor_cluster.hpp"
#include "doctor_facts.hpp"
#include "json.hpp"
#include "pool_access.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::string_view doctor_examples =
    "  stillpoint doctor                              the current folder\n"
    "  stillpoint doctor /mnt/pmem\n"
    "  stillpoint doctor --json /var/lib/bank\n"
    "  stillpoint doctor rados://bank                 a pool of a Ceph cluster, by writes to an object of its own\n";

constexpr std::string_view doctor_exit_codes =
    "  0 a pool can be kept there; 64 wrong usage; 66 no such path, or no such pool of the cluster; 69 no pool can be kept there,\n"
    "  or a cluster that can lose what it acknowledges; 74 the system refused to say; 75 no monitor answers;\n"
    "  77 this user may not create files there, or may not use the cluster\n";

struct DoctorArguments {
    std::string path = ".";
    bool json = false;
};

const char* yes_no(bool value) { return value ? "yes" : "no"; }
const char* yes_no(const std::optional<bool>& tried) { return tried ? yes_no(*tried) : "not tried"; }

std::string cache_text(const FileSystemFacts& files)
{
    if (!files.volatile_write_cache) {
        return "not visible";
    }
    return *files.volatile_write_cache ? "write back (volatile; a sync flushes it)" : "write through (none that is volatile)";
}

void print_facts(const CpuFacts& cpu, const KernelFacts& kernel, const FileSystemFacts& files)
{
    print("CPU\n");
    print("  write back              {}\n", cpu.write_back);
    print("  persistent caches       {}\n", yes_no(cpu.persistent_caches));
    print("kernel {}\n", kernel.release);
    print("  userfaultfd WP_ASYNC    {}\n", !kernel.async_protection     ? "no"
                                            : kernel.serves_system_calls ? "yes, also for faults in system calls"
                                                                         : "yes, for faults in user mode only");
    print("  PAGEMAP_SCAN            {}\n", yes_no(kernel.pagemap_scan));
    print("  membarrier              {}\n", yes_no(kernel.membarrier));
    print("  io_uring                {}\n", kernel.io_uring_errno == 0 ? "yes" : text_of("no ({})", std::strerror(kernel.io_uring_errno)));
    print("file system of {}\n", files.folder);
    print("  type                    {}{}, {} free\n", files.type, files.read_only ? " (read-only)" : "", size_text(files.free_bytes));
    print("  device                  {}, write cache: {}\n", files.device.empty() ? "none" : files.device, cache_text(files));
    print("  fallocate, O_DIRECT     {}, {}\n", yes_no(files.allocates), yes_no(files.direct));
    print("  DAX (MAP_SYNC)          {}\n", yes_no(files.map_sync));
}

void print_verdict(const Verdict& verdict)
{
    if (!verdict.pool_possible) {
        print("a pool here               no: {}\n", verdict.durability_reason);
        return;
    }
    print("a pool here\n");
    print("  durability              {}: {}\n", verdict.power ? "power" : "process only", verdict.durability_reason);
    for (const std::string& condition : verdict.conditions) {
        print("    provided that         {}\n", condition);
    }
    print("  medium                  {}: {}\n", verdict.medium, verdict.medium_reason);
    print("  tracker                 {}: {}\n", verdict.tracker, verdict.tracker_reason);
    print("  recovery                {}: {}\n", verdict.recovery, verdict.recovery_reason);
}

void add_machine(Json& json, const CpuFacts& cpu, const KernelFacts& kernel)
{
    json.begin_object("cpu").text("write_back", cpu.write_back).boolean("persistent_caches", cpu.persistent_caches).end_object();
    json.begin_object("kernel")
        .text("release", kernel.release)
        .boolean("wp_async", kernel.async_protection)
        .boolean("serves_system_calls", kernel.serves_system_calls)
        .boolean("pagemap_scan", kernel.pagemap_scan)
        .boolean("membarrier", kernel.membarrier)
        .boolean("io_uring", kernel.io_uring_errno == 0)
        .end_object();
}

void add_files(Json& json, const FileSystemFacts& files)
{
    json.begin_object("file_system").text("folder", files.folder).text("type", files.type).text("device", files.device);
    if (files.volatile_write_cache) {
        json.boolean("volatile_write_cache", *files.volatile_write_cache);
    }
    json.boolean("in_memory", files.in_memory)
        .boolean("network", files.network)
        .boolean("read_only", files.read_only)
        .boolean("sync_disabled", files.sync_disabled)
        .number("free_bytes", files.free_bytes);
    const std::pair<std::string_view, std::optional<bool>> tried[] = {
        {"fallocate", files.allocates}, {"locks", files.locks}, {"o_direct", files.direct}, {"map_sync", files.map_sync}};
    for (const auto& [name, outcome] : tried) {
        if (outcome) {
            json.boolean(name, *outcome);
        }
    }
    json.end_object();
}

void add_verdict(Json& json, const Verdict& verdict)
{
    json.begin_object("verdict")
        .boolean("pool_possible", verdict.pool_possible)
        .text("durability", !verdict.pool_possible ? "none"
                            : verdict.power        ? "power"
                                                   : "process")
        .text("durability_reason", verdict.durability_reason)
        .begin_array("conditions");
    for (const std::string& condition : verdict.conditions) {
        json.element(condition);
    }
    json.end_array()
        .text("medium", verdict.medium)
        .text("medium_reason", verdict.medium_reason)
        .text("tracker", verdict.tracker)
        .text("tracker_reason", verdict.tracker_reason)
        .text("recovery", verdict.recovery)
        .text("recovery_reason", verdict.recovery_reason)
        .end_object();
}

int doctor(const DoctorArguments& arguments)
{
    if (arguments.path.starts_with("rados://")) {
        return doctor_cluster(arguments.path, arguments.json);
    }
    const auto files = probe_file_system(arguments.path);
    if (!files) {
        return report_failure(files.error());
    }
    const CpuFacts cpu = probe_cpu();
    const KernelFacts kernel = probe_kernel();
    const Verdict verdict = judge(cpu, kernel, *files);
    if (arguments.json) {
        Json json;
        json.begin_object();
        add_machine(json, cpu, kernel);
        add_files(json, *files);
        add_verdict(json, verdict);
        answer(std::move(json));
    } else {
        print_facts(cpu, kernel, *files);
        print_verdict(verdict);
    }
    if (verdict.pool_possible) {
        return exit_codes::ok;
    }
    const bool forbidden = files->create_errno == EACCES || files->create_errno == EPERM;
    const int code = forbidden ? exit_codes::no_permission : exit_codes::unavailable;
    return arguments.json ? report_error(code, text_of("no pool can be kept in {}: {}", files->folder, verdict.durability_reason)) : code;
}

}  // namespace

void add_doctor(CLI::App& app, Invocation& invocation)
{
    CommandLine line(app, invocation, "doctor",
                     "Show which guarantees this machine and file system, or a Ceph cluster, can give, and why.");
    const auto arguments = std::make_shared<DoctorArguments>();
    line.positional("PATH", arguments->path, false, "A folder, or a pool in it; rados://CEPHPOOL. Default: the current folder.");
    line.json_flag(arguments->json, "Print one JSON object.");
    line.footer(doctor_examples, doctor_exit_codes);
    line.on_use([arguments] { return doctor(*arguments); });
}

}  // namespace stillpoint::tool

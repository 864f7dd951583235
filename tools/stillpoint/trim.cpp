// `stillpoint trim`: gives the disk back what a pool at rest does not need.

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.hpp"
#include "json.hpp"
#include "media/errno_text.hpp"
#include "media/open.hpp"
#include "os/descriptor.hpp"
#include "pool_access.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::string_view trim_examples = "  stillpoint trim bank.pool\n"
                                           "  stillpoint trim --json bank.pool\n";

constexpr std::string_view trim_exit_codes =
    "  0 trimmed; 64 wrong usage; 65 not a sound pool, or not of such an engine; 66 no such file; 71 no\n"
    "  memory; 74 input/output error; 75 a process has the pool open; 77 no permission\n";

struct TrimArguments {
    std::string path;
    bool json = false;
};

struct Trimmed {
    std::string engine;
    std::uint64_t disk_bytes_before;
    std::uint64_t disk_bytes_after;
};

/// Makes all that the kernel has of the file durable, whatever the pool's level, and tells what it takes on the disk.
Result<std::uint64_t> settled_disk_bytes(const std::string& path)
{
    constexpr std::uint64_t block_bytes = 512;
    const os::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat status{};
    if (!file.valid() || fsync(file.get()) != 0 || fstat(file.get(), &status) != 0) {
        return fail(SP_E_IO, errno, "{}: {}", path, describe_errno(errno));
    }
    return static_cast<std::uint64_t>(status.st_blocks) * block_bytes;
}

Result<Trimmed> trim_pool(const std::string& path)
{
    if (lies_in_no_file(path)) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "{}: a pool in Ceph has room only for what was written; there is nothing to give back", path);
    }
    auto opened = open_pool_to_change(path);
    if (!opened) {
        return pass_on(opened.error());
    }
    const std::string engine(opened->driver->format.name);
    if (opened->driver->trim == nullptr) {
        return fail(
            SP_E_POOL_ENGINE, 0,
            "{}: pools of the engine {} keep one copy of their data, so that they have no room to give back; stillpoint copy makes a "
            "sparse one",
            path, engine);
    }
    const auto before = settled_disk_bytes(path);
    if (!before) {
        return pass_on(before.error());
    }
    if (auto trimmed = opened->driver->trim(opened->pool); !trimmed) {
        return pass_on(trimmed.error());
    }
    const auto after = settled_disk_bytes(path);
    if (!after) {
        return pass_on(after.error());
    }
    return Trimmed{engine, *before, *after};
}

int trim(const TrimArguments& arguments)
{
    const auto trimmed = trim_pool(arguments.path);
    if (!trimmed) {
        return report_failure(trimmed.error());
    }
    const std::uint64_t given_back = trimmed->disk_bytes_before - std::min(trimmed->disk_bytes_before, trimmed->disk_bytes_after);
    if (arguments.json) {
        Json json;
        json.begin_object().text("pool", arguments.path).text("engine", trimmed->engine).number("bytes_given_back", given_back);
        json.number("disk_bytes_before", trimmed->disk_bytes_before).number("disk_bytes", trimmed->disk_bytes_after);
        answer(std::move(json));
    } else {
        print("{}: {} given back; it takes {} of the disk\n", arguments.path, size_text(given_back), size_text(trimmed->disk_bytes_after));
    }
    return exit_codes::ok;
}

}  // namespace

void add_trim(CLI::App& app, Invocation& invocation)
{
    CommandLine line(app, invocation, "trim", "Give the disk back what a pool at rest does not need.");
    const auto arguments = std::make_shared<TrimArguments>();
    line.positional("POOL", arguments->path, true, "Path of the pool file; no program may have it open.");
    line.json_flag(arguments->json, "Print one JSON object.");
    line.footer(trim_examples, trim_exit_codes);
    line.on_use([arguments] { return trim(*arguments); });
}

}  // namespace stillpoint::tool

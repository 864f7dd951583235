// `stillpoint restore`: makes a pool from a copy, with all room taken on the disk. The old pool or the new one is there at every moment.

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

#include "media/open.hpp"
#include "media/file_names.hpp"
#include "os/clock.hpp"
#include "os/descriptor.hpp"
#include "os/file_lock.hpp"
#include "whole_copy.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::string_view examples = "  stillpoint restore backup/bank.pool bank.pool           where there is no bank.pool\n"
                                      "  stillpoint restore --force backup/bank.pool bank.pool   in place of it\n"
                                      "  zstd -d < bank.zst | stillpoint restore - bank.pool\n";

constexpr std::string_view exit_code_lines =
    "  0 made, and verified; 64 wrong usage; 65 the copy is damaged, or not a pool; 66 no such file; 71 no\n"
    "  memory; 73 POOL exists, or no space; 74 input/output error; 75 a process has POOL or COPY open; 77 no\n"
    "  permission\n";

struct RestoreArguments {
    std::string copy_path;
    std::string path;
    bool force = false;
    bool json = false;
    bool quiet = false;
};

/// The pool that is to be replaced, locked so that no program opens it meanwhile; not valid where there is none.
/// Errors: pool_exists, pool_locked, pool_read_only, io.
Result<os::Descriptor> lock_old_pool(const RestoreArguments& arguments)
{
    if (lies_in_no_file(arguments.path)) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "{}: restore makes a file; `stillpoint copy COPY {}` brings it into Ceph", arguments.path,
                    arguments.path);
    }
    struct stat facts{};
    if (lstat(arguments.path.c_str(), &facts) != 0) {
        return os::Descriptor{};
    }
    if (!arguments.force) {
        return fail(SP_E_POOL_EXISTS, EEXIST, "{} exists already: choose another name, or replace it (--force)", arguments.path);
    }
    if (!S_ISREG(facts.st_mode)) {
        return fail(SP_E_NOT_A_POOL, 0, "{} is not a regular file; name the pool file itself", arguments.path);
    }
    os::Descriptor file{open(arguments.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)};
    if (!file.valid()) {
        return fail(errno == EACCES ? SP_E_POOL_READ_ONLY : SP_E_IO, errno, "cannot open {}: {}", arguments.path, std::strerror(errno));
    }
    int holder = 0;
    if (os::lock_file(file.get(), os::LockKind::exclusive, arguments.path, holder) != 0) {
        return fail(SP_E_POOL_LOCKED, EWOULDBLOCK, "{} is open in process {}; stop that process first", arguments.path, holder);
    }
    return file;
}

Result<PoolFileCopyFigures> take_copy(const RestoreArguments& arguments, CopiedFile& file, CopyProgress line)
{
    if (arguments.copy_path != "-") {
        auto figures = copy_pool_file(arguments.copy_path, file, {.may_pause = false, .progress = line});
        if (figures && figures->was_in_use) {
            return fail(SP_E_POOL_LOCKED, EWOULDBLOCK, "{} is open in process {}; copy it first (stillpoint copy)", arguments.copy_path,
                        figures->process);
        }
        return figures;
    }
    const std::uint64_t begun_ns = os::monotonic_ns();
    const auto pass = file.take_stream(STDIN_FILENO, "standard input");
    if (!pass) {
        return pass_on(pass.error());
    }
    PoolFileCopyFigures figures;
    figures.passes = 1;
    figures.bytes_read = pass->bytes_read;
    figures.bytes_written = pass->bytes_changed;
    figures.elapsed_ns = os::monotonic_ns() - begun_ns;
    return figures;
}

int restore(const RestoreArguments& arguments, bool progress)
{
    const auto old = lock_old_pool(arguments);
    if (!old) {
        return report_failure(old.error());
    }
    const bool from_pipe = arguments.copy_path == "-";
    if (lies_in_no_file(arguments.copy_path)) {
        return report_error(exit_codes::usage, text_of("{0}: restore reads files; `stillpoint copy {0} {1}` makes one of it",
                                                       arguments.copy_path, arguments.path));
    }
    if (!from_pipe && access(arguments.copy_path.c_str(), F_OK) != 0) {
        return report_error(exit_codes::no_input, text_of("cannot open {}: {}; check the path", arguments.copy_path, std::strerror(errno)));
    }
    const std::string unfinished = unfinished_name(arguments.path);
    auto file = CopiedFile::open(unfinished, from_pipe ? 0600U : mode_of(arguments.copy_path));
    if (!file) {
        return report_failure(file.error());
    }
    const CopyProgress line = copy_progress_line(progress);
    const auto figures = take_copy(arguments, *file, line);
    erase_copy_progress(line);
    if (!figures) {
        if (file->size_bytes() == 0) {
            unlink(unfinished.c_str());
        }
        return report_failure(figures.error());
    }
    if (auto taken = file->take_room(); !taken) {
        return report_failure(taken.error());
    }
    const auto verified = finish_and_verify(*file, unfinished, from_pipe ? "standard input" : arguments.copy_path, progress);
    if (!verified) {
        return report_failure(verified.error());
    }
    auto named = old->valid() ? replace_by(unfinished, arguments.path) : give_name(unfinished, arguments.path);
    if (named) {
        named = file->remove_mark();
    }
    if (!named) {
        return report_failure(named.error());
    }
    (arguments.json ? print_copy_json : print_copy_text)(arguments.path, from_pipe ? "standard input" : arguments.copy_path, size_of(*file),
                                                         *figures, *verified);
    return exit_codes::ok;
}

}  // namespace

void add_restore(CLI::App& app, Invocation& invocation)
{
    CommandLine line(app, invocation, "restore", "Make a pool from a copy of it, and verify it first.");
    const auto arguments = std::make_shared<RestoreArguments>();
    line.positional("COPY", arguments->copy_path, true, "Path of the copy, which is only read; - is standard input.");
    line.positional("POOL", arguments->path, true, "Path of the pool file.");
    line.flag("--force", arguments->force, "Replace the pool file if there is one.");
    line.json_flag(arguments->json, "Print one JSON object.");
    line.flag("-q,--quiet", arguments->quiet, "Print errors and results only: no progress.");
    line.footer(examples, exit_code_lines);
    line.on_use([arguments, &invocation] { return restore(*arguments, !arguments->quiet && !invocation.quiet); });
}

}  // namespace stillpoint::tool

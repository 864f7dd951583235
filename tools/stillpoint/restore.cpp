// `stillpoint restore`: makes a pool from a copy, with all room taken on the disk. The old pool or the new one is there at every moment.

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "increment.hpp"
#include "media/open.hpp"
#include "media/file_names.hpp"
#include "os/clock.hpp"
#include "os/descriptor.hpp"
#include "os/file_lock.hpp"
#include "whole_copy.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::string_view restore_examples = "  stillpoint restore backup/bank.pool bank.pool           where there is no bank.pool\n"
                                              "  stillpoint restore --force backup/bank.pool bank.pool   in place of it\n"
                                              "  zstd -d < bank.zst | stillpoint restore - bank.pool\n"
                                              "  stillpoint restore backup/bank.pool backup/bank.monday backup/bank.tuesday bank.pool\n";

constexpr std::string_view restore_exit_codes =
    "  0 made, and verified; 64 wrong usage; 65 the copy is damaged, or not a pool; 66 no such file; 71 no\n"
    "  memory; 73 POOL exists, or no space; 74 input/output error; 75 a process has POOL or COPY open; 77 no\n"
    "  permission\n";

struct RestoreArguments {
    std::vector<std::string> files;       ///< as given: the copy, its increments, the pool
    std::string copy_path;
    std::vector<std::string> increments;  ///< in their order
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

/// The names of the copy, the increments and the pool. Errors: invalid_argument.
Result<void> take_names(RestoreArguments& arguments)
{
    auto& files = arguments.files;
    if (files.size() < 2) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "POOL is missing: name the copy, and then the pool that is to be made of it");
    }
    if (std::count(files.begin(), files.end() - 1, "-") > 1) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "standard input (-) is given twice; save one of the streams as a file");
    }
    arguments.copy_path = files.front();
    arguments.path = files.back();
    arguments.increments.assign(files.begin() + 1, files.end() - 1);
    if (arguments.copy_path != "-" && is_increment(arguments.copy_path)) {
        return fail(SP_E_INVALID_ARGUMENT, 0,
                    "{} is an increment: name the full copy that it follows first, then the increments in their order, then the new pool",
                    arguments.copy_path);
    }
    return {};
}

std::string folder_of(const std::string& path)
{
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

int restore(RestoreArguments& arguments, bool progress)
{
    if (auto named = take_names(arguments); !named) {
        return report_failure(named.error());
    }
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
    const auto chain = open_chain(arguments.increments, folder_of(arguments.path));
    if (!chain) {
        return report_failure(chain.error());
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
    if (!chain->empty()) {
        if (auto added = add_increments(*file, from_pipe ? "standard input" : arguments.copy_path, *chain); !added) {
            if (added.error().code != SP_E_NO_SPACE && added.error().code != SP_E_IO) {
                unlink(unfinished.c_str());
            }
            return report_failure(added.error());
        }
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
    line.positionals("COPY [INCREMENT...] POOL", arguments->files,
                     "Path of the copy, which is only read; its increments, in their order; path of the pool file. - is standard input.");
    line.flag("--force", arguments->force, "Replace the pool file if there is one.");
    line.json_flag(arguments->json, "Print one JSON object.");
    line.flag("-q,--quiet", arguments->quiet, "Print errors and results only: no progress.");
    line.footer(restore_examples, restore_exit_codes);
    line.on_use([arguments, &invocation] { return restore(*arguments, !arguments->quiet && !invocation.quiet); });
}

}  // namespace stillpoint::tool

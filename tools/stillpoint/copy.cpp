// `stillpoint copy`: copies a pool, at rest or while a program has it open, to a new file or to standard output.

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <unistd.h>

#include "increment.hpp"
#include "media/copied_medium.hpp"
#include "media/file_names.hpp"
#include "media/open.hpp"
#include "option_flags.hpp"
#include "piped_file.hpp"
#include "raised_maximum.hpp"
#include "rados_copy.hpp"
#include "whole_copy.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::string_view copy_examples = "  stillpoint copy bank.pool backup/bank.pool        while ./bank runs, or after it\n"
                                           "  stillpoint copy bank.pool - | zstd > bank.zst     to a pipe; `stillpoint restore` reads one\n"
                                           "  stillpoint copy --pause bank.pool backup/b.pool   where a program's writes cannot be held\n"
                                           "  stillpoint copy --incremental-since backup/bank.pool bank.pool backup/bank.monday\n";

constexpr std::string_view copy_exit_codes =
    "  0 made, and verified; 64 wrong usage; 65 damaged, or not a pool; 66 no such file; 71 no memory; 73 NEW\n"
    "  exists, or no space; 74 input/output error; 75 the program's writes cannot be held, or not for so\n"
    "  long; 77 no permission\n";

struct CopyArguments {
    std::string path;
    std::string new_path;
    std::uint64_t hold_max_ms = 2000;
    std::uint64_t maximum_mb = 0;  ///< of the copy; 0: that of the pool
    std::string base;  ///< of an increment; empty: a whole copy
    bool pause = false;
    bool json = false;
    bool quiet = false;
};

Result<void> publish(CopiedFile& copy, const std::string& unfinished, const CopyArguments& arguments, bool to_pipe)
{
    if (to_pipe) {
        auto sent = send_to_output(copy.fd(), copy.size_bytes());
        unlink(unfinished.c_str());
        return sent;
    }
    auto named = give_name(unfinished, arguments.new_path);
    return named ? copy.remove_mark() : named;
}

/// Before the copy has its name: it never has one with the old maximum. Errors: as raise_maximum.
Result<void> raise_maximum_of(CopiedFile& copy, const CopyArguments& arguments)
{
    if (arguments.maximum_mb == 0) {
        return {};
    }
    auto opened = open_pool_of(arguments.path, std::make_unique<CopiedMedium>(copy, arguments.path), false);
    const auto raised = opened ? raise_maximum(*opened, arguments.path, arguments.maximum_mb * mib)
                               : Result<RaisedMaximum>(pass_on(opened.error()));
    return raised ? Result<void>{} : Result<void>{pass_on(raised.error())};
}

int copy_to_rados(const CopyArguments& arguments, bool progress)
{
    const auto made = copy_into_rados(arguments.path, arguments.new_path, progress);
    if (!made) {
        return report_unopened(arguments.path, made.error());
    }
    (arguments.json ? print_copy_json : print_copy_text)(arguments.new_path, arguments.path, {made->file_bytes, false}, made->figures,
                                                         made->verified);
    return exit_codes::ok;
}

int copy_increment_of(const CopyArguments& arguments, bool progress)
{
    if (lies_in_no_file(arguments.path) || lies_in_no_file(arguments.new_path)) {
        return report_error(exit_codes::usage, "increments are made of pools in files, as files; copy the pool to a file first");
    }
    if (arguments.maximum_mb != 0) {
        return report_error(exit_codes::usage, "--pool-max and --incremental-since exclude each other: raise the maximum of the pool "
                                               "that `stillpoint restore` makes, by `stillpoint grow`");
    }
    if (access(arguments.path.c_str(), F_OK) != 0) {
        return report_error(exit_codes::no_input, text_of("cannot open {}: {}; check the path", arguments.path, std::strerror(errno)));
    }
    const PoolFileCopyOptions options{arguments.hold_max_ms * 1'000'000, arguments.pause, copy_progress_line(progress)};
    return copy_increment({arguments.path, arguments.new_path, arguments.base, options, arguments.json, progress});
}

int copy_pool(const CopyArguments& arguments, bool progress)
{
    if (arguments.base.empty() && lies_in_no_file(arguments.new_path)) {
        return copy_to_rados(arguments, progress);
    }
    const bool from_rados = lies_in_no_file(arguments.path);
    const bool to_pipe = arguments.new_path == "-";
    if (to_pipe && isatty(STDOUT_FILENO) == 1) {
        return report_error(exit_codes::usage, "standard output is a terminal; send the copy to a pipe or a file");
    }
    if (to_pipe && arguments.json) {
        return report_error(exit_codes::usage, "--json and a copy to standard output exclude each other");
    }
    if (to_pipe && arguments.maximum_mb != 0) {
        return report_error(exit_codes::usage, "--pool-max and a copy to standard output exclude each other: raise the maximum of the pool "
                                               "that `stillpoint restore` makes, by `stillpoint grow`");
    }
    if (!to_pipe) {
        if (auto free = check_name_is_free(arguments.new_path); !free) {
            return report_failure(free.error());
        }
    }
    if (!arguments.base.empty()) {
        return copy_increment_of(arguments, progress);
    }
    // For a pipe the copy is made beside the pool first: only a whole one is verified.
    const std::string pipe_name = from_rados ? text_of("{}/stillpoint", std::filesystem::temp_directory_path().string()) : arguments.path;
    const std::string unfinished = to_pipe ? text_of("{}.piped-{}", pipe_name, getpid()) : unfinished_name(arguments.new_path);
    if (!from_rados && access(arguments.path.c_str(), F_OK) != 0) {
        return report_error(exit_codes::no_input, text_of("cannot open {}: {}; check the path", arguments.path, std::strerror(errno)));
    }
    auto copy = CopiedFile::open(unfinished, mode_of(arguments.path));
    if (!copy) {
        return report_failure(copy.error());
    }
    const CopyProgress line = copy_progress_line(progress);
    const auto figures = from_rados ? copy_out_of_rados(arguments.path, *copy)
                                    : copy_pool_file(arguments.path, *copy, {arguments.hold_max_ms * 1'000'000, arguments.pause, line});
    erase_copy_progress(line);
    const auto raised = figures ? raise_maximum_of(*copy, arguments) : Result<void>(pass_on(figures.error()));
    auto verified = raised ? finish_and_verify(*copy, unfinished, arguments.path, progress) : Result<VerifiedCopy>(pass_on(raised.error()));
    if (!verified) {
        const bool is_refused = figures && !raised && raised.error().code != SP_E_NO_SPACE && raised.error().code != SP_E_IO;
        if (to_pipe || copy->size_bytes() == 0 || is_refused) {
            unlink(unfinished.c_str());
        }
        return report_failure(verified.error());
    }
    if (auto published = publish(*copy, unfinished, arguments, to_pipe); !published) {
        return report_failure(published.error());
    }
    if (arguments.json) {
        print_copy_json(arguments.new_path, arguments.path, size_of(*copy), *figures, *verified);
    } else if (!to_pipe) {
        print_copy_text(arguments.new_path, arguments.path, size_of(*copy), *figures, *verified);
    }
    return exit_codes::ok;
}

}  // namespace

void add_copy(CLI::App& app, Invocation& invocation)
{
    CommandLine line(app, invocation, "copy", "Copy a pool, also while a program has it open, and verify the copy.");
    const auto arguments = std::make_shared<CopyArguments>();
    line.positional("POOL", arguments->path, true, "Path of the pool file; it is only read.");
    line.positional("NEW", arguments->new_path, true, "Path of the copy, which must not exist; - is standard output.");
    const auto take = [arguments](const std::string& text) -> std::string {
        const std::optional<std::uint64_t> limit = parse_quantity("hold_max_ms", text);
        constexpr std::uint64_t limit_max_ms = hold_limit_ns_max / 1'000'000;
        if (!limit || *limit == 0 || *limit > limit_max_ms) {
            return text_of("\"{}\" is not a time of 1 to {} ms, such as 500ms or 2s", text, limit_max_ms);
        }
        arguments->hold_max_ms = *limit;
        return "";
    };
    line.option("--hold-max", "TIME", take,
                "A running program's writes to the pool are held back for so long at most, e.g. 500ms. Default: 2s.");
    line.flag("--pause", arguments->pause,
              "Where a running program's writes cannot be held, stop its process (SIGSTOP) for the last part of the copy.");
    line.option("--pool-max", "SIZE", maximum_taker(arguments->maximum_mb), "The maximum of the copy, larger than the pool's, e.g. 64G.");
    line.text_option("--incremental-since", "BASE", arguments->base,
                     "Copy only what has changed since BASE, an earlier copy or increment of this pool; `stillpoint restore` adds it.");
    line.json_flag(arguments->json, "Print one JSON object.");
    line.flag("-q,--quiet", arguments->quiet, "Print errors and results only: no progress.");
    line.footer(copy_examples, copy_exit_codes);
    line.on_use([arguments, &invocation] { return copy_pool(*arguments, !arguments->quiet && !invocation.quiet); });
}

}  // namespace stillpoint::tool

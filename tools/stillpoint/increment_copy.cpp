// `stillpoint copy --incremental-since`: what has changed in a pool since an earlier copy, or since an earlier increment.

#include <memory>
#include <unistd.h>
#include <utility>

#include "increment.hpp"
#include "json.hpp"
#include "media/file_names.hpp"
#include "piped_file.hpp"
#include "pool/pool_increment.hpp"
#include "pool_access.hpp"
#include "whole_copy.hpp"

namespace stillpoint::tool {

namespace {

Result<IncrementBase> read_base(const std::string& path)
{
    if (access(path.c_str(), F_OK) != 0 && !path.empty() && path.find_first_not_of("0123456789") == std::string::npos) {
        return fail(SP_E_INVALID_ARGUMENT, 0,
                    "--incremental-since takes a file, not an epoch: the copy or the increment of epoch {} (`stillpoint info FILE` shows "
                    "which it has), since only it tells which pages have changed",
                    path);
    }
    return IncrementBase::read(path);
}

/// IncrementRequest::verify.
Result<void> verify_increment(void* context, std::unique_ptr<Medium> medium)
{
    const auto& arguments = *static_cast<const IncrementArguments*>(context);
    erase_copy_progress(arguments.options.progress);
    const auto opened = open_pool_of(arguments.path, std::move(medium), true);
    const auto verified = opened ? verify(*opened, arguments.progress, {}) : Result<Verification>(pass_on(opened.error()));
    if (!verified) {
        const Failure& found = verified.error();
        return fail(found.code, found.os_error, "{} is not copied, since its copy is not sound: {}", arguments.path, found.text());
    }
    return {};
}

void print_text(const IncrementArguments& arguments, const MadeIncrement& made)
{
    const layout::IncrementHeader& header = made.header;
    print("{}: what has changed in {} since {}, from epoch {} to {}: {} of {} ({} in {:.1f} s)\n", arguments.new_path, arguments.path,
          arguments.base, header.base.epoch, header.own.epoch, size_text((header.changed_pages + header.cleared_pages) * page_bytes),
          size_text(header.own.file_bytes), size_text(header.increment_bytes), static_cast<double>(made.figures.elapsed_ns) / 1e9);
    print_how_it_was_held(made.figures);
    if (!made.is_verified) {
        print("the pool in it is verified when it is restored, since a program has it open and its base is an increment\n");
    }
}

void print_json(const IncrementArguments& arguments, const MadeIncrement& made)
{
    const layout::IncrementHeader& header = made.header;
    Json json;
    json.begin_object().text("pool", arguments.path).text("new", arguments.new_path).text("engine", header.engine_name);
    json.number("durable_epoch", header.own.epoch).number("file_bytes", header.own.file_bytes).boolean("resumed", false);
    add_figures(json, made.figures);
    json.text("base", arguments.base).number("base_epoch", header.base.epoch).number("increment_bytes", header.increment_bytes);
    json.number("changed_pages", header.changed_pages).number("cleared_pages", header.cleared_pages);
    json.boolean("verified", made.is_verified);
    answer(std::move(json));
}

}  // namespace

int copy_increment(const IncrementArguments& arguments)
{
    const bool to_pipe = arguments.new_path == "-";
    const std::string unfinished = to_pipe ? text_of("{}.piped-{}", arguments.path, getpid()) : unfinished_name(arguments.new_path);
    const auto base = read_base(arguments.base);
    if (!base) {
        return report_failure(base.error());
    }
    auto increment = NewIncrement::open(unfinished, mode_of(arguments.path));
    if (!increment) {
        return report_failure(increment.error());
    }
    IncrementArguments context = arguments;
    const auto made = make_increment({arguments.path, unfinished, arguments.options, &verify_increment, &context}, *base, *increment);
    erase_copy_progress(arguments.options.progress);
    if (!made) {
        unlink(unfinished.c_str());
        return report_failure(made.error());
    }
    const auto done = to_pipe ? send_to_output(increment->fd(), made->header.increment_bytes) : give_name(unfinished, arguments.new_path);
    if (to_pipe || !done) {
        unlink(unfinished.c_str());
    }
    if (!done) {
        return report_failure(done.error());
    }
    if (arguments.json) {
        print_json(arguments, *made);
    } else if (!to_pipe) {
        print_text(arguments, *made);
    }
    return exit_codes::ok;
}

}  // namespace stillpoint::tool

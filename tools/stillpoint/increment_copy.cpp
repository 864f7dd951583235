// `stillpoint copy --incremental-since`: what has changed in a pool since an earlier copy, or since an earlier increment.

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <unistd.h>

#include "increment.hpp"
#include "json.hpp"
#include "media/copied_medium.hpp"
#include "media/errno_text.hpp"
#include "media/file_names.hpp"
#include "media/open.hpp"
#include "piped_file.hpp"
#include "pool_access.hpp"
#include "whole_copy.hpp"

namespace stillpoint::tool {

namespace {

/// The state that the increment is added to.
struct Base {
    IncrementedPool pool;
    layout::FileState state;
    PageDigests digests;
    os::Descriptor file;  ///< of a whole copy; not valid where the base is an increment
    std::optional<OpenedPool> opened;  ///< of a whole copy: keeps its lock
};

IncrementedPool identity_of(const PoolFacts& facts) { return {facts.uuid, facts.engine_name, facts.engine_layout_version}; }

Result<Base> base_of_increment(const std::string& path)
{
    auto increment = IncrementFile::open(path);
    if (!increment) {
        return pass_on(increment.error());
    }
    const layout::IncrementHeader& header = increment->header();
    return Base{{std::to_array(header.pool_uuid), increment->engine_name(), header.engine_layout_version},
                header.own,
                increment->take_digests(),
                {},
                {}};
}

Result<Base> base_of_copy(const std::string& path)
{
    auto opened = open_pool_to_read(path, true);
    auto state = opened ? state_of(*opened) : Result<layout::FileState>(pass_on(opened.error()));
    if (!state) {
        return pass_on(state.error());
    }
    os::Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    if (!file.valid()) {
        return fail(code_of_errno(errno), errno, "cannot open {}: {}", path, std::strerror(errno));
    }
    const PoolFacts& facts = opened->pool.facts();
    auto digests = PageDigests::of_file(file.get(), path, facts.file_bytes, digest_seed(facts.uuid));
    if (!digests) {
        return pass_on(digests.error());
    }
    state->digest = digests->of_all();
    return Base{identity_of(facts), *state, std::move(*digests), std::move(file), std::move(*opened)};
}

Result<Base> read_base(const std::string& path)
{
    if (lies_in_no_file(path)) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "{}: increments are made of pools in files; copy it to a file first (stillpoint copy)", path);
    }
    if (access(path.c_str(), F_OK) != 0 && !path.empty() && path.find_first_not_of("0123456789") == std::string::npos) {
        return fail(SP_E_INVALID_ARGUMENT, 0,
                    "--incremental-since takes a file, not an epoch: the copy or the increment of epoch {} (`stillpoint info FILE` shows "
                    "which it has), since only it tells which pages have changed",
                    path);
    }
    return is_increment(path) ? base_of_increment(path) : base_of_copy(path);
}

/// The copy is of the pool that the base is of, and not older.
Result<void> check_history(const IncrementArguments& arguments, const Base& base, const PoolFacts& facts, std::uint64_t epoch)
{
    if (facts.uuid != base.pool.uuid || facts.engine_name != base.pool.engine_name) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "{} is pool {}, and {} is of pool {}: an increment needs a copy of the same pool",
                    arguments.path, to_text(facts.uuid), arguments.base, to_text(base.pool.uuid));
    }
    if (epoch < base.state.epoch || facts.generation < base.state.generation) {
        return fail(SP_E_INVALID_ARGUMENT, 0,
                    "{} is at epoch {}, and {} at {}: the pool was restored from an older copy since, or the two are mixed up; make a full "
                    "copy (without --incremental-since)",
                    arguments.path, epoch, arguments.base, base.state.epoch);
    }
    return {};
}

struct Made {
    layout::IncrementHeader header;
    PoolFileCopyFigures figures;
    bool is_verified = false;
};

/// The file `name`, open, locked and without a name: what a killed command has written there is gone with it.
Result<CopiedFile> open_scratch(const std::string& name)
{
    auto scratch = CopiedFile::open(name, 0600);
    if (scratch) {
        unlink(name.c_str());
    }
    return scratch;
}

Result<Made> make(const IncrementArguments& arguments, const Base& base, const std::string& unfinished, NewIncrement& increment)
{
    auto changes = open_scratch(unfinished + ".changes");
    if (!changes) {
        return pass_on(changes.error());
    }
    changes->leave_out(base.digests);
    // A pool at rest stays so until the increment is verified, and has all that is left out.
    const auto at_rest = open_pool_to_read(arguments.path, true);
    const auto figures = copy_pool_file(arguments.path, *changes, arguments.options);
    erase_copy_progress(arguments.options.progress);
    if (!figures) {
        return pass_on(figures.error());
    }
    const os::Descriptor pool{at_rest ? open(arguments.path.c_str(), O_RDONLY | O_CLOEXEC) : -1};
    const int unchanged = base.file.valid() ? base.file.get() : pool.get();
    const auto opened = open_pool_of(arguments.path, std::make_unique<CopiedMedium>(*changes, arguments.path, unchanged), true);
    const auto state = opened ? state_of(*opened) : Result<layout::FileState>(pass_on(opened.error()));
    if (!state) {
        return pass_on(state.error());
    }
    const PoolFacts& facts = opened->pool.facts();
    if (auto checked = check_history(arguments, base, facts, state->epoch); !checked) {
        return pass_on(checked.error());
    }
    Made made{{}, *figures};
    if (unchanged >= 0) {
        if (const auto verified = verify(*opened, arguments.progress, {}); !verified) {
            const Failure& found = verified.error();
            return fail(found.code, found.os_error, "{} is not copied, since its copy is not sound: {}", arguments.path, found.text());
        }
        made.is_verified = true;
    }
    const auto header = increment.write(identity_of(facts), base.state, base.digests, *state, *changes);
    if (!header) {
        return pass_on(header.error());
    }
    made.header = *header;
    return made;
}

void print_text(const IncrementArguments& arguments, const Made& made)
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

void print_json(const IncrementArguments& arguments, const Made& made)
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
    const auto made = make(arguments, *base, unfinished, *increment);
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

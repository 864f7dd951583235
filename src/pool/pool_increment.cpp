#include "pool/pool_increment.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

#include "media/copied_medium.hpp"
#include "media/errno_text.hpp"
#include "media/open.hpp"
#include "pool/commit_record.hpp"
#include "pool/uuid.hpp"

namespace stillpoint {

namespace {

IncrementedPool identity_of(const PoolFacts& facts) { return {facts.uuid, facts.engine_name, facts.engine_layout_version}; }

Result<std::unique_ptr<Medium>> open_locked(const std::string& path)
{
    MediumOptions options;
    options.path = path;
    return open_medium_read_only(options, true);
}

Result<IncrementBase> base_of_increment(const std::string& path)
{
    auto increment = IncrementFile::open(path);
    if (!increment) {
        return pass_on(increment.error());
    }
    const layout::IncrementHeader& header = increment->header();
    const IncrementedPool pool{std::to_array(header.pool_uuid), increment->engine_name(), header.engine_layout_version};
    const layout::FileState state = header.own;
    return IncrementBase{path, pool, state, increment->take_digests(), {}, {}};
}

Result<IncrementBase> base_of_copy(const std::string& path)
{
    auto medium = open_locked(path);
    auto pool = medium ? Pool::open(std::move(*medium), EngineFormat{}, true) : Result<Pool>(pass_on(medium.error()));
    auto state = pool ? state_of(*pool) : Result<layout::FileState>(pass_on(pool.error()));
    if (!state) {
        return pass_on(state.error());
    }
    os::Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    if (!file.valid()) {
        return fail(code_of_errno(errno), errno, "cannot open {}: {}", path, describe_errno(errno));
    }
    const PoolFacts& facts = pool->facts();
    auto digests = PageDigests::of_file(file.get(), path, facts.file_bytes, digest_seed(facts.uuid));
    if (!digests) {
        return pass_on(digests.error());
    }
    state->digest = digests->of_all();
    const IncrementedPool identity = identity_of(facts);
    return IncrementBase{path, identity, *state, std::move(*digests), std::move(file), std::move(*pool)};
}

/// The pool is the one that the base is of, and not older.
Result<void> check_history(const std::string& path, const IncrementBase& base, const PoolFacts& facts, std::uint64_t epoch)
{
    if (facts.uuid != base.pool.uuid || facts.engine_name != base.pool.engine_name) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "{} is pool {}, and {} is of pool {}: an increment needs a copy of the same pool", path,
                    to_text(facts.uuid), base.path, to_text(base.pool.uuid));
    }
    if (epoch < base.state.epoch || facts.generation < base.state.generation) {
        return fail(SP_E_INVALID_ARGUMENT, 0,
                    "{} is at epoch {}, and {} at {}: the pool was restored from an older copy since, or the two are mixed up; make a full "
                    "copy, which is the base of later increments",
                    path, epoch, base.path, base.state.epoch);
    }
    return {};
}

/// The file `name`, open, locked and without a name: what a copier that is killed has written there is gone with it.
Result<CopiedFile> open_scratch(const std::string& name)
{
    auto scratch = CopiedFile::open(name, 0600);
    if (scratch) {
        unlink(name.c_str());
    }
    return scratch;
}

}  // namespace

Result<layout::FileState> state_of(const Pool& pool)
{
    const auto record = load_commit_record(pool);
    if (!record) {
        return pass_on(record.error());
    }
    const PoolFacts& facts = pool.facts();
    return layout::FileState{*record ? (*record)->epoch : 0, facts.generation, facts.file_bytes, 0};
}

Result<IncrementBase> IncrementBase::read(const std::string& path)
{
    if (lies_in_no_file(path)) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "{}: increments are made of pools in files; copy it to a file first (stillpoint copy)", path);
    }
    return is_increment(path) ? base_of_increment(path) : base_of_copy(path);
}

Result<MadeIncrement> make_increment(const IncrementRequest& request, const IncrementBase& base, NewIncrement& increment)
{
    auto changes = open_scratch(request.unfinished + ".changes");
    if (!changes) {
        return pass_on(changes.error());
    }
    changes->leave_out(base.digests);
    // A pool at rest stays so until the increment is verified, and has all that is left out.
    const auto at_rest = open_locked(request.path);
    const auto figures = copy_pool_file(request.path, *changes, request.options);
    if (!figures) {
        return pass_on(figures.error());
    }
    const os::Descriptor own{at_rest ? open(request.path.c_str(), O_RDONLY | O_CLOEXEC) : -1};
    const int unchanged = base.file.valid() ? base.file.get() : own.get();
    const auto pool = Pool::open(std::make_unique<CopiedMedium>(*changes, request.path, unchanged), EngineFormat{}, true);
    const auto state = pool ? state_of(*pool) : Result<layout::FileState>(pass_on(pool.error()));
    if (!state) {
        return pass_on(state.error());
    }
    const PoolFacts& facts = pool->facts();
    if (auto checked = check_history(request.path, base, facts, state->epoch); !checked) {
        return pass_on(checked.error());
    }
    MadeIncrement made{{}, *figures};
    if (unchanged >= 0 && request.verify != nullptr) {
        auto verified = request.verify(request.context, std::make_unique<CopiedMedium>(*changes, request.path, unchanged));
        if (!verified) {
            return pass_on(verified.error());
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

}  // namespace stillpoint

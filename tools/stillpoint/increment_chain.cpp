// Increments are added to the copy that they follow; and what `info` and `check` tell of one.

#include <algorithm>
#include <cstring>
#include <memory>

#include "increment.hpp"
#include "json.hpp"
#include "media/copied_medium.hpp"
#include "os/clock.hpp"
#include "piped_file.hpp"
#include "pool/pool_increment.hpp"
#include "pool/uuid.hpp"
#include "pool_access.hpp"

namespace stillpoint::tool {

namespace {

bool are_equal(const layout::FileState& a, const layout::FileState& b) { return std::memcmp(&a, &b, sizeof a) == 0; }

/// `next` was made after exactly that state of that pool; `before` is the name of what has it.
Result<void> check_follows(const IncrementFile& next, const std::string& before, const Uuid& uuid, const layout::FileState& state)
{
    const layout::IncrementHeader& header = next.header();
    if (std::to_array(header.pool_uuid) != uuid) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "{} is an increment of pool {}, and {} is of pool {}: name copies of one pool", next.path(),
                    to_text(std::to_array(header.pool_uuid)), before, to_text(uuid));
    }
    if (are_equal(header.base, state)) {
        return {};
    }
    if (header.base.epoch != state.epoch || header.base.generation != state.generation) {
        return fail(SP_E_INVALID_ARGUMENT, 0,
                    "{} follows epoch {}, and {} ends at epoch {}: an increment between them is missing, or their order is another "
                    "(`stillpoint info` shows the epochs of each)",
                    next.path(), header.base.epoch, before, state.epoch);
    }
    return fail(SP_E_INVALID_ARGUMENT, 0,
                "{} does not follow {}: both name epoch {}, but the bytes there are others, since the copy was changed after it was made, "
                "or the pool was restored in between and went another way; use the copies that the increment was made after",
                next.path(), before, state.epoch);
}

/// Adds one increment: the pages in the file, and what is known of them.
struct Adding {
    CopiedFile& file;
    PageDigests digests;

    static Result<void> page(void* self, std::uint64_t page, const std::byte* bytes)
    {
        auto& adding = *static_cast<Adding*>(self);
        adding.digests.set(page, adding.digests.digest_of(bytes));
        return adding.file.patch(page, bytes);
    }
};

Result<PageDigests> add(CopiedFile& file, const PageDigests& before, const IncrementFile& increment)
{
    const std::uint64_t file_bytes = increment.header().own.file_bytes;
    auto digests = PageDigests::of_zeroes(file_bytes, before.seed());
    if (!digests) {
        return digests;
    }
    for (std::uint64_t page = 0, end = std::min(before.pages(), digests->pages()); page < end; ++page) {
        digests->set(page, before[page]);
    }
    if (auto sized = file.set_size(file_bytes); !sized) {
        return pass_on(sized.error());
    }
    Adding adding{file, std::move(*digests)};
    if (auto added = increment.visit(&Adding::page, &adding); !added) {
        return pass_on(added.error());
    }
    if (adding.digests.of_all() != increment.header().own.digest) {
        return fail(SP_E_POOL_CORRUPT, 0, "{}: added to what it follows, it does not make the state that it names; make a new full copy",
                    increment.path());
    }
    return std::move(adding.digests);
}

Json json_of(const IncrementFile& increment)
{
    const layout::IncrementHeader& header = increment.header();
    Json json;
    json.begin_object().text("increment", increment.path()).text("uuid", to_text(std::to_array(header.pool_uuid)));
    json.text("engine", printable(increment.engine_name())).number("format_version", header.version);
    json.number("base_epoch", header.base.epoch).number("durable_epoch", header.own.epoch);
    json.number("base_generation", header.base.generation).number("generation", header.own.generation);
    json.number("file_bytes", header.own.file_bytes).number("increment_bytes", header.increment_bytes);
    json.number("changed_pages", header.changed_pages).number("cleared_pages", header.cleared_pages);
    json.number("created_unix_seconds", header.created_unix_seconds);
    return json;
}

}  // namespace

Result<std::vector<IncrementFile>> open_chain(const std::vector<std::string>& paths, const std::string& folder)
{
    std::vector<IncrementFile> chain;
    for (const std::string& path : paths) {
        Result<IncrementFile> opened = fail(SP_E_IO, 0, "not opened");
        if (path == "-") {
            auto kept = keep_input(folder);
            if (!kept) {
                return pass_on(kept.error());
            }
            opened = IncrementFile::take(std::move(*kept), "standard input");
        } else {
            opened = IncrementFile::open(path);
        }
        if (!opened) {
            return pass_on(opened.error());
        }
        if (!chain.empty()) {
            const IncrementFile& before = chain.back();
            const layout::IncrementHeader& header = before.header();
            if (auto follows = check_follows(*opened, before.path(), std::to_array(header.pool_uuid), header.own); !follows) {
                return pass_on(follows.error());
            }
        }
        chain.push_back(std::move(*opened));
    }
    return chain;
}

Result<void> add_increments(CopiedFile& file, const std::string& from, const std::vector<IncrementFile>& chain)
{
    const auto opened = open_pool_of(from, std::make_unique<CopiedMedium>(file, from, -1), true);
    const auto state = opened ? state_of(opened->pool) : Result<layout::FileState>(pass_on(opened.error()));
    if (!state) {
        return pass_on(state.error());
    }
    const Uuid uuid = opened->pool.facts().uuid;
    auto digests = PageDigests::of_file(file.fd(), from, state->file_bytes, digest_seed(uuid));
    if (!digests) {
        return pass_on(digests.error());
    }
    for (std::size_t at = 0; at + page_bytes <= file.head_bytes(); at += page_bytes) {
        digests->set(at / page_bytes, digests->digest_of(file.head() + at));
    }
    layout::FileState found = *state;
    found.digest = digests->of_all();
    if (auto follows = check_follows(chain.front(), from, uuid, found); !follows) {
        return follows;
    }
    for (const IncrementFile& increment : chain) {
        digests = add(file, *digests, increment);
        if (!digests) {
            return pass_on(digests.error());
        }
    }
    return {};
}

int tell_of_increment(const std::string& path, bool json)
{
    const auto increment = IncrementFile::open(path);
    if (!increment) {
        return report_failure(increment.error());
    }
    if (json) {
        answer(json_of(*increment));
        return exit_codes::ok;
    }
    const layout::IncrementHeader& header = increment->header();
    print("increment        {}\n", path);
    print("uuid             {}\n", to_text(std::to_array(header.pool_uuid)));
    print("format           version {}, engine {} (layout {})\n", header.version, printable(increment->engine_name()),
          header.engine_layout_version);
    print("follows          the copy of epoch {}\n", header.base.epoch);
    print("durable epoch    {}\n", header.own.epoch);
    print("made             {}\n", local_time_text(header.created_unix_seconds));
    print("pages            {} changed, {} cleared, of a pool of {}\n", header.changed_pages, header.cleared_pages,
          size_text(header.own.file_bytes));
    print("file             {}\n", size_text(header.increment_bytes));
    print("to use it        stillpoint restore COPY {} NEW, where COPY is the copy of epoch {}\n", path, header.base.epoch);
    return exit_codes::ok;
}

int check_increment(const std::string& path, bool json)
{
    const std::uint64_t begun_ns = os::monotonic_ns();
    const auto increment = IncrementFile::open(path);
    if (!increment) {
        return report_failure(increment.error());
    }
    const auto ignore = [](void*, std::uint64_t, const std::byte*) -> Result<void> { return {}; };
    if (auto read = increment->visit(ignore, nullptr); !read) {
        return report_failure(read.error());
    }
    const std::uint64_t elapsed_ns = os::monotonic_ns() - begun_ns;
    const layout::IncrementHeader& header = increment->header();
    if (json) {
        Json answered = json_of(*increment);
        answered.text("result", "sound").number("elapsed_ns", elapsed_ns);
        answer(std::move(answered));
        return exit_codes::ok;
    }
    print(
        "{}: an increment from epoch {} to {}, and sound ({} pages verified in {:.1f} s); `stillpoint restore COPY {} NEW` makes a pool of it "
        "and of the copy of epoch {}, and verifies that\n",
        path, header.base.epoch, header.own.epoch, header.changed_pages, static_cast<double>(elapsed_ns) / 1e9, path, header.base.epoch);
    return exit_codes::ok;
}

}  // namespace stillpoint::tool

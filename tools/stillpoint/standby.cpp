// `stillpoint standby`: waits until a pool in Ceph is free, its bytes in memory meanwhile, and becomes the program that goes on with it.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include "core/units.hpp"
#include "media/open.hpp"
#include "media/rados/agent_link.hpp"
#include "media/rados/open_request.hpp"
#include "command.hpp"
#include "option_flags.hpp"
#include "os/clock.hpp"
#include "os/log.hpp"
#include "os/service_manager.hpp"
#include "output.hpp"
#include "pool_access.hpp"
#include "runtime/pool_owner.hpp"
#include "runtime_flags.hpp"
#include "start.hpp"
#include "type_descriptions.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::string_view standby_examples =
    "  stillpoint standby --pool rados://data/bank -- ./bank --threads 2\n"
    "  stillpoint standby --pool rados://data/bank --lease 5s --memory 8G -- ./bank\n"
    "The same command runs on each machine: one has the pool, the others wait. It takes the options of\n"
    "`stillpoint run`, which are the program's once it begins.\n";

constexpr std::string_view standby_exit_codes =
    "  the program's own, once it runs. Before that: 64 wrong usage, or no pool in Ceph; 65 the pool is\n"
    "  damaged, foreign, newer or another engine's; 69 no agent or no cluster; 71 no memory;\n"
    "  74 input/output error, or the pool was removed; 75 another process was quicker to make the pool; 77 no permission; 126 the program cannot be run\n"
    "  durably; 127 there is no such program.\n";

constexpr std::uint64_t look_ns = 200'000'000;

struct StandbyArguments {
    std::shared_ptr<RuntimeFlags> runtime = std::make_shared<RuntimeFlags>();
    std::uint64_t memory_mb = 0;
};

/// Half of the machine's.
std::uint64_t usual_memory_bytes()
{
    const long pages = sysconf(_SC_PHYS_PAGES);
    return std::max<std::uint64_t>(static_cast<std::uint64_t>(std::max(pages, 0L)) * page_bytes / 2, rados::object_bytes);
}

std::string memory_taker(const std::string& text, std::uint64_t& memory_mb)
{
    const auto wanted = parse_quantity("memory_mb", text);
    if (!wanted || *wanted < rados::object_bytes / mib || *wanted > rados::file_bytes_max / mib) {
        return text_of("\"{}\" is not a size from 4M to {}G, such as 512M or 64G", text, rados::file_bytes_max / gib);
    }
    memory_mb = *wanted;
    return "";
}

/// Tells the user and the service manager of the time before the program begins.
class Voice {
public:
    explicit Voice(const Options& options) : pool_(options.pool), is_quiet_(options.quiet)
    {
        if (options.notify) {
            if (const auto found = os::find_service_manager(); !found) {
                os::log(os::Severity::warning, "{}", found.error().text());
            }
        }
    }
    void follows() const
    {
        os::tell_service_manager("READY=1\nSTATUS=Standby: another process has the pool");
        if (!is_quiet_) {
            os::log(os::Severity::note, "{}: another process has it; this one stands by", pool_);
        }
    }
    /// Once, when memory has all that fits.
    void tells_of(const rados::SharedState& state)
    {
        const std::uint64_t wanted = state.wanted_bytes.load(std::memory_order_relaxed);
        const std::uint64_t warm = state.warm_bytes.load(std::memory_order_relaxed);
        const std::uint64_t now_ns = os::monotonic_ns();
        if (wanted == 0 || is_told_) {
            return;
        }
        // Parts that were never written are not there to be read: the end of growth is the end.
        grown_ns_ = warm != last_warm_ ? now_ns : grown_ns_;
        last_warm_ = warm;
        constexpr std::uint64_t settled_ns = 1'500'000'000;
        if (warm >= wanted || (grown_ns_ != 0 && now_ns - grown_ns_ > settled_ns)) {
            is_told_ = true;
            os::tell_service_manager(text_of("STATUS=Standby: {} of the pool in memory", size_text(warm)).c_str());
            if (!is_quiet_) {
                os::log(os::Severity::note, "{}: warm, {} of it in memory", pool_, size_text(warm));
            }
        }
    }
    void begins() const
    {
        if (!is_quiet_) {
            os::log(os::Severity::note, "{}: this process has it now; the program begins", pool_);
        }
    }

private:
    std::string pool_;
    bool is_quiet_;
    bool is_told_ = false;
    std::uint64_t last_warm_ = 0;
    std::uint64_t grown_ns_ = 0;
};

/// Until the pool is this process's. Errors: pool_missing, and those of AgentLink::open().
Result<void> await_pool(const Options& options, std::uint64_t memory_bytes)
{
    MediumOptions medium;
    medium.path = options.pool;
    medium.lease_ms = static_cast<std::uint32_t>(options.lease_ms);
    const auto request = rados::request_for(medium, rados::Mode::standby, memory_bytes);
    if (!request) {
        return pass_on(request.error());
    }
    const auto agent = rados::find_agent();
    if (!agent) {
        return pass_on(agent.error());
    }
    rados::OpenReply reply{};
    auto link = rados::AgentLink::open(*agent, *request, reply);
    if (!link) {
        return pass_on(link.error());
    }
    Voice voice(options);
    bool follows = false;
    for (;;) {
        const auto owned = (*link)->await_second_reply(reply, look_ns);
        if (!owned) {
            return owned.error().code != SP_E_POOL_MISSING
                       ? Result<void>{pass_on(owned.error())}
                       : Result<void>{fail(SP_E_IO, 0, "{}: the pool was removed while this process stood by", options.pool)};
        }
        if (*owned) {
            break;
        }
        if (!std::exchange(follows, true)) {
            voice.follows();
        }
        voice.tells_of((*link)->state());
    }
    voice.begins();
    auto left = (*link)->leave_to_program(options.pool, reply);
    // The link lives on in the descriptors that the program inherits; nothing of it may be closed in order.
    static_cast<void>(link->release());  // NOLINT(bugprone-unused-return-value)
    return left;
}

int standby(const StandbyArguments& arguments, std::vector<std::string> command)
{
    const auto start = prepare_start(*arguments.runtime, command, "standby");
    if (!start) {
        return report_error(start.error().exit_code, start.error().message);
    }
    const Options& options = start->options;
    if (!lies_in_no_file(options.pool)) {
        return report_error(exit_codes::usage, "standby: --pool names no pool in Ceph",
                            {.next = "name one: --pool rados://CEPHPOOL/NAME; a file has one machine, and needs `stillpoint run`"});
    }
    if (options.take_over) {
        return report_error(exit_codes::usage, "standby: --take-over is for `stillpoint run`; a standby waits until the pool is free");
    }
    state_types(start->program);
    unsetenv(run_variable);
    if (const auto owned = await_pool(options, arguments.memory_mb != 0 ? arguments.memory_mb * mib : usual_memory_bytes()); !owned) {
        if (owned.error().code != SP_E_POOL_MISSING) {
            return report_failure(owned.error());
        }
        // The first start makes the pool, as `run` does.
        setenv(run_variable, std::to_string(getpid()).c_str(), 1);
    }
    return become_program(start->program, std::move(command));
}

}  // namespace

void add_standby(CLI::App& app, Invocation& invocation)
{
    CommandLine line(
        app, invocation, "standby",
        "Wait for a pool in Ceph, warm, and become the program when its owner is gone: stillpoint standby [OPTIONS] -- PROGRAM "
        "[ARGUMENTS...]");
    const auto arguments = std::make_shared<StandbyArguments>();
    line.option(
        "--memory", "SIZE", [arguments](const std::string& text) { return memory_taker(text, arguments->memory_mb); },
        "How much of the pool is kept in memory while this process waits. Default: half of the machine's memory.");
    add_runtime_flags(line, arguments->runtime, [](const OptionRow&) { return true; });
    line.ends_with_a_command();
    line.footer(standby_examples, standby_exit_codes);
    line.on_use([line, arguments, &invocation] {
        arguments->runtime->settle(invocation.quiet);
        return standby(*arguments, line.command());
    });
}

}  // namespace stillpoint::tool

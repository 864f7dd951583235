// `stillpoint grow`: raises the maximum of a pool at rest.

#include <cerrno>
#include <cstring>
#include <memory>
#include <unistd.h>

#include "command.hpp"
#include "json.hpp"
#include "media/open.hpp"
#include "output.hpp"
#include "pool_access.hpp"
#include "raised_maximum.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::string_view grow_examples = "  stillpoint grow bank.pool --pool-max 64G\n"
                                           "  stillpoint copy bank.pool larger.pool --pool-max 64G   leaves the old pool as it is\n";

constexpr std::string_view grow_exit_codes =
    "  0 raised, or it was that already; 64 wrong usage, or no larger maximum; 65 not a pool, or not of such\n"
    "  an engine; 66 no such file; 71 no memory; 74 input/output error; 75 a process has the pool open; 77 no\n"
    "  permission\n";

struct GrowArguments {
    std::string path;
    std::uint64_t maximum_mb = 0;
    bool json = false;
};

int grow(const GrowArguments& arguments)
{
    if (!lies_in_no_file(arguments.path) && access(arguments.path.c_str(), F_OK) != 0) {
        return report_error(exit_codes::no_input, text_of("cannot open {}: {}; check the path", arguments.path, std::strerror(errno)));
    }
    if (arguments.maximum_mb == 0) {
        return report_error(exit_codes::usage, "grow: --pool-max is missing: the new maximum, e.g. --pool-max 64G");
    }
    const auto raised = raise_maximum(arguments.path, arguments.maximum_mb * mib);
    if (!raised) {
        return report_failure(raised.error());
    }
    if (arguments.json) {
        Json json;
        json.begin_object().text("pool", arguments.path).text("engine", raised->engine);
        json.number("image_bytes_max_before", raised->bytes_before).number("image_bytes_max", raised->bytes);
        answer(std::move(json));
    } else if (raised->bytes_before == raised->bytes) {
        print("{}: the maximum is {} already\n", arguments.path, size_text(raised->bytes));
    } else {
        print("{}: the maximum is {}, it was {}; the next start of its program makes the heap's tables longer\n", arguments.path,
              size_text(raised->bytes), size_text(raised->bytes_before));
    }
    return exit_codes::ok;
}

}  // namespace

void add_grow(CLI::App& app, Invocation& invocation)
{
    CommandLine line(app, invocation, "grow", "Raise the maximum size of a pool at rest.");
    const auto arguments = std::make_shared<GrowArguments>();
    line.positional("POOL", arguments->path, true, "Path of the pool file; no program may have it open.");
    line.option("--pool-max", "SIZE", maximum_taker(arguments->maximum_mb), "The new maximum of durable memory, e.g. 64G.");
    line.json_flag(arguments->json, "Print one JSON object.");
    line.footer(grow_examples, grow_exit_codes);
    line.on_use([arguments] { return grow(*arguments); });
}

}  // namespace stillpoint::tool

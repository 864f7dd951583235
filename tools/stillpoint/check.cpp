// `stillpoint check`: verifies every checksum and every invariant of a pool at rest; writes nothing.

#include "command.hpp"
#include "error_words.hpp"
#include "json.hpp"
#include "os/clock.hpp"
#include "pool_access.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::string_view examples = "  stillpoint check bank.pool && stillpoint run --pool bank.pool -- ./bank\n"
                                      "  stillpoint check --json bank.pool\n";

constexpr std::string_view exit_code_lines =
    "  0 sound; 64 wrong usage; 65 damaged, or not a pool (the message names the place); 66 no such\n"
    "  file; 71 no memory; 74 input/output error; 75 a process has the pool open; 77 no permission\n";

struct CheckArguments {
    std::string path;
    bool json = false;
};

void print_sound(const CheckArguments& arguments, const PoolFacts& facts, const Verification& verified, std::uint64_t elapsed_ns)
{
    if (arguments.json) {
        Json json;
        answer(json.begin_object()
                   .text("pool", arguments.path)
                   .text("result", "sound")
                   .number("durable_epoch", verified.recovery.epoch)
                   .boolean("clean", verified.recovery.clean)
                   .number("pages_verified", verified.recovery.pages_present)
                   .number("pages_rolled_back", verified.recovery.pages_rolled_back)
                   .number("handles", verified.handles)
                   .boolean("superblock_damaged", facts.superblock_damaged)
                   .number("elapsed_ns", elapsed_ns));
        return;
    }
    if (facts.superblock_damaged) {
        print("{}: one of the two superblocks is damaged; the other copy is used, and the next run rewrites this one\n", arguments.path);
    }
    for (const Failure& remark : verified.remarks) {
        print("{}\n", printable(remark.text()));
    }
    print("{}: sound at epoch {} ({} pages and {} handles verified in {:.1f} s)\n", arguments.path, verified.recovery.epoch,
          verified.recovery.pages_present, verified.handles, static_cast<double>(elapsed_ns) / 1e9);
}

int report_finding(const CheckArguments& arguments, const Failure& failure)
{
    if (arguments.json) {
        Json json;
        answer(
            json.begin_object().text("pool", arguments.path).text("result", failure.code == SP_E_POOL_CORRUPT ? "damaged" : "not checked"));
    }
    return report_failure(failure);
}

int report_damage(const CheckArguments& arguments, const Verification& verified, bool may_be_salvaged)
{
    if (arguments.json) {
        Json json;
        json.begin_object().text("pool", arguments.path).text("result", "damaged").number("findings_total", verified.damage_count);
        json.begin_array("findings");
        for (const Failure& failure : verified.damages) {
            json.begin_object().text("code", code_word_for(failure.code)).text("finding", failure.text()).end_object();
        }
        answer(json.end_array());
    }
    for (const Failure& failure : verified.damages) {
        if (&failure != &verified.damages.front()) {
            print_error("stillpoint: also: {}\n", printable(failure.text()));
        }
    }
    if (verified.damage_count > verified.damages.size()) {
        print_error("stillpoint: also: {} more\n", verified.damage_count - verified.damages.size());
    }
    if (may_be_salvaged) {
        print_error("stillpoint: without a copy: `stillpoint salvage {} NEW` makes a new pool of what is proved, and lists the rest\n",
                    printable(arguments.path));
    }
    return report_failure(verified.damages.front());
}

int check(const CheckArguments& arguments, bool quiet)
{
    const std::uint64_t begin_ns = os::monotonic_ns();
    const auto opened = open_pool_to_read(arguments.path, true);
    if (!opened) {
        return report_finding(arguments, opened.error());
    }
    const auto verified = verify_all(*opened, !quiet, {});
    if (!verified) {
        return report_finding(arguments, verified.error());
    }
    if (verified->damage_count != 0) {
        return report_damage(arguments, *verified, opened->driver->salvage != nullptr);
    }
    print_sound(arguments, opened->pool.facts(), *verified, os::monotonic_ns() - begin_ns);
    return exit_codes::ok;
}

}  // namespace

void add_check(CLI::App& app, Invocation& invocation)
{
    CommandLine line(app, invocation, "check", "Verify every checksum and invariant of a pool that no program has open.");
    const auto arguments = std::make_shared<CheckArguments>();
    line.positional("POOL", arguments->path, true, "Path of the pool file.");
    line.json_flag(arguments->json, "Print one JSON object, also for a damaged pool.");
    line.footer(examples, exit_code_lines);
    line.on_use([arguments, &invocation] { return check(*arguments, invocation.quiet); });
}

}  // namespace stillpoint::tool

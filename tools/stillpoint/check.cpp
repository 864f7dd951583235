// `stillpoint check`: verifies every checksum and every invariant of a pool at rest; writes nothing.

#include <string>
#include <string_view>
#include <vector>

#include "command.hpp"
#include "damage_words.hpp"
#include "error_words.hpp"
#include "increment.hpp"
#include "json.hpp"
#include "os/clock.hpp"
#include "pool_access.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::string_view check_examples = "  stillpoint check bank.pool && stillpoint run --pool bank.pool -- ./bank\n"
                                            "  stillpoint check --json bank.pool\n";

constexpr std::string_view check_exit_codes =
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
        json.begin_object()
            .text("pool", arguments.path)
            .text("result", "sound")
            .number("durable_epoch", verified.recovery.epoch)
            .boolean("clean", verified.recovery.clean)
            .number("pages_verified", verified.recovery.pages_present)
            .number("pages_rolled_back", verified.recovery.pages_rolled_back)
            .number("handles", verified.handles)
            .boolean("superblock_damaged", facts.superblock_damaged)
            .number("elapsed_ns", elapsed_ns)
            .begin_array("remarks");
        for (const Failure& remark : verified.remarks) {
            json.element(remark.text());
        }
        answer(json.end_array());
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
        answer(json.begin_object().text("pool", arguments.path).text("result", "not checked"));
    }
    return report_failure(failure);
}

/// Parts that were examined, without a finding.
std::vector<std::string_view> sound_parts(const Verification& verified)
{
    std::vector<std::string_view> words;
    for (std::size_t part = 0; part < pool_parts; ++part) {
        if (verified.damages_by_part[part] == 0 && verified.examined[part]) {
            words.push_back(words_of(static_cast<PoolPart>(part)).word);
        }
    }
    return words;
}

void print_damage_json(const CheckArguments& arguments, const Verification& verified, const std::vector<Help>& helps)
{
    Json json;
    json.begin_object().text("pool", arguments.path).text("result", "damaged").number("findings_total", verified.damage_count);
    json.boolean("ended_early", verified.ended_early).begin_array("findings");
    for (std::size_t i = 0; i < verified.damages.size(); ++i) {
        json.begin_object().text("code", code_word_for(verified.damages[i].code)).text("part", words_of(verified.damage_parts[i]).word);
        json.text("finding", verified.damages[i].text()).end_object();
    }
    json.end_array().begin_array("parts");
    for (std::size_t part = 0; part < pool_parts; ++part) {
        if (verified.damages_by_part[part] != 0) {
            const PartWords& words = words_of(static_cast<PoolPart>(part));
            json.begin_object().text("part", words.word).number("findings", verified.damages_by_part[part]);
            json.text("lost", words.lost).text("kept", words.kept).end_object();
        }
    }
    json.end_array().begin_array("parts_sound");
    for (const std::string_view word : sound_parts(verified)) {
        json.element(word);
    }
    json.end_array().begin_array("helps");
    for (const Help& help : helps) {
        json.begin_object().text("command", help.command).text("what", help.what).end_object();
    }
    answer(json.end_array());
}

/// After the findings themselves, on standard error.
void print_what_is_lost(const Verification& verified, const std::vector<Help>& helps)
{
    for (std::size_t part = 0; part < pool_parts; ++part) {
        if (const std::uint64_t count = verified.damages_by_part[part]; count != 0) {
            const PartWords& words = words_of(static_cast<PoolPart>(part));
            print_error("stillpoint: {}: {} finding{}: {}; {}\n", words.word, count, count == 1 ? "" : "s", words.lost, words.kept);
        }
    }
    std::string sound;
    for (const std::string_view word : sound_parts(verified)) {
        sound += sound.empty() ? "" : ", ";
        sound += word;
    }
    if (!sound.empty()) {
        print_error("stillpoint: sound: {}{}\n", sound, verified.ended_early ? "; what comes after could not be examined" : "");
    }
    for (const Help& help : helps) {
        print_error("stillpoint: `{}` {}\n", printable(help.command), help.what);
    }
}

int report_damage(const CheckArguments& arguments, const Verification& verified, const EngineDriver* driver)
{
    const std::vector<Help> helps = helps_for(arguments.path, driver, verified);
    if (arguments.json) {
        print_damage_json(arguments, verified, helps);
    }
    for (const Failure& failure : verified.damages) {
        if (&failure != &verified.damages.front()) {
            print_error("stillpoint: also: {}\n", printable(failure.text()));
        }
    }
    if (verified.damage_count > verified.damages.size()) {
        print_error("stillpoint: also: {} more\n", verified.damage_count - verified.damages.size());
    }
    print_what_is_lost(verified, helps);
    return report_failure(verified.damages.front());
}

/// The superblocks contradict each other, or hold nothing.
int report_unopened_damage(const CheckArguments& arguments, const Failure& failure)
{
    Verification verified;
    verified.damages.push_back(failure);
    verified.damage_parts.push_back(PoolPart::superblocks);
    verified.damages_by_part[static_cast<std::size_t>(PoolPart::superblocks)] = 1;
    verified.damage_count = 1;
    verified.ended_early = true;
    return report_damage(arguments, verified, nullptr);
}

int check(const CheckArguments& arguments, bool quiet)
{
    if (is_increment(arguments.path)) {
        return check_increment(arguments.path, arguments.json);
    }
    const std::uint64_t begin_ns = os::monotonic_ns();
    const auto opened = open_pool_to_read(arguments.path, true);
    if (!opened) {
        return opened.error().code == SP_E_POOL_CORRUPT ? report_unopened_damage(arguments, opened.error())
                                                        : report_finding(arguments, opened.error());
    }
    const auto verified = verify_all(*opened, !quiet, {}, {}, true);
    if (!verified) {
        return report_finding(arguments, verified.error());
    }
    if (verified->damage_count != 0) {
        return report_damage(arguments, *verified, opened->driver);
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
    line.footer(check_examples, check_exit_codes);
    line.on_use([arguments, &invocation] { return check(*arguments, invocation.quiet); });
}

}  // namespace stillpoint::tool

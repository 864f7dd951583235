#include "arguments.hpp"

#include <charconv>
#include <fmt/core.h>
#include <string_view>
#include <sysexits.h>
#include <variant>

namespace stillpoint::explorer {

namespace {

struct Option {
    const char* name;
    std::variant<bool*, std::string*, std::uint64_t*, unsigned*, double*> value;
    const char* what;
};

template <class Number>
bool read_number(std::string_view text, Number& out)
{
    const auto read = std::from_chars(text.data(), text.data() + text.size(), out);
    return read.ec == std::errc() && read.ptr == text.data() + text.size() && !(out < Number{});
}

/// `word`: what follows the option's name.
bool take(const Option& option, const char* word)
{
    return std::visit(
        [word]<class Value>(Value* value) {
            if constexpr (std::is_same_v<Value, bool>) {
                return *value = true;
            } else if constexpr (std::is_same_v<Value, std::string>) {
                return word != nullptr && !(*value = word).empty();
            } else {
                return word != nullptr && read_number(word, *value);
            }
        },
        option.value);
}

void print_help(const auto& options)
{
    fmt::print("Crashes programs at every moment of simulated and real media, and asks an oracle about each state.\n"
               "Usage: explore [OPTIONS]\n\n");
    for (const Option& option : options) {
        fmt::print("  {:<12} {:<6} {}\n", option.name, std::holds_alternative<bool*>(option.value) ? "" : "VALUE", option.what);
    }
    fmt::print("\nExit code: 0 no violation, every canary killed; 1 otherwise; 64 wrong usage; 130 interrupted.\n\n"
               "Examples:\n  explore --states 1000000\n  explore --campaign uffd/page --seed 7\n  explore --canaries\n"
               "  explore --canary commit-durable\n");
}

}  // namespace

std::optional<int> read_arguments(int count, char** words, Arguments& arguments)
{
    const Option options[] = {
        {"--states", &arguments.states, "Crash states to judge, over all campaigns."},
        {"--seconds", &arguments.seconds,
         "Wall clock to take at most, with canaries for each of them (default there: 300); what is out of time ends early."},
        {"--seed", &arguments.seed, "Of programs and samples: the same seed explores the same."},
        {"--jobs", &arguments.jobs, "Processes at a time."},
        {"--campaign", &arguments.campaign, "Only campaigns with this in their names."},
        {"--canaries", &arguments.canaries, "Remove one fence, sync or checksum at a time: each must be noticed."},
        {"--each", &arguments.each, "With --canaries: each Nth of them; the seed says with which it begins."},
        {"--canary", &arguments.canary, "Only this canary."},
        {"--counts", &arguments.counts, "Count what checkpoints cost the medium, and end."},
        {"--golden", &arguments.golden, "With --counts: compare with this file; a difference is a failure."},
        {"--list", &arguments.list, "Name campaigns and canaries, and end."},
        {"--json", &arguments.json, "Print one JSON object."},
        {"--quiet", &arguments.quiet, "Print the summary only."},
        {"--scratch", &arguments.scratch, "Directory for real files (default: $TMPDIR, or /tmp)."},
    };
    for (int i = 1; i < count; ++i) {
        const std::string_view word = words[i];
        if (word == "--help" || word == "-h") {
            print_help(options);
            return EX_OK;
        }
        const Option* found = std::find_if(std::begin(options), std::end(options), [&](const Option& one) { return word == one.name; });
        const bool takes_word = found != std::end(options) && !std::holds_alternative<bool*>(found->value);
        if (found == std::end(options) || !take(*found, takes_word && i + 1 < count ? words[i + 1] : nullptr)) {
            fmt::print(stderr, "explore: \"{}\" {}; explore --help names the options\n", word,
                       takes_word ? "has no value after it that it can take" : "is not an option");
            return EX_USAGE;
        }
        i += takes_word ? 1 : 0;
    }
    if (arguments.states == 0 || arguments.jobs == 0 || arguments.each == 0) {
        fmt::print(stderr, "explore: --states, --jobs and --each need at least 1\n");
        return EX_USAGE;
    }
    return std::nullopt;
}

}  // namespace stillpoint::explorer

// `stillpoint tables`: prints the documents that are made from the project's tables. Hidden: it is
// for scripts/generate_docs.py and for the tests that compare documents with reality.

#include "api/registry.hpp"
#include "api/session.hpp"
#include "api/statistics.hpp"
#include "command.hpp"
#include "option_flags.hpp"
#include "runtime/engine.hpp"

namespace stillpoint::tool {

namespace {

std::string replaced(std::string text, std::string_view what, std::string_view by)
{
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
        text.replace(at, what.size(), by);
    }
    return text;
}

/// The range of a number, the words of a choice, ….
std::string range_of(const OptionRow& row)
{
    switch (row.kind) {
    case OptionKind::number: return text_of("{} to {}", row.minimum, row.maximum);
    case OptionKind::choice: return "`" + replaced(std::string(row.words), "|", "`, `") + "`";
    case OptionKind::flag: return "flag";
    case OptionKind::text: break;
    }
    return "text";
}

/// One table for what all engines have, then one for each engine.
template <class Row, class PrintRow>
void print_sections(std::span<const Row> rows, std::string_view table_head, PrintRow&& print_row)
{
    std::string_view engine = "none yet";
    for (const Row& row : rows) {
        if (row.engine != engine) {
            engine = row.engine;
            print("\n## {}{}\n\n{}", engine.empty() ? "Every engine" : "Engine ", engine, table_head);
        }
        print_row(row);
    }
}

void print_options()
{
    print("# Options\n\n"
          "Generated from `src/runtime/options.inc` and the engines' `options.inc` by `make docs`; do not edit.\n\n"
          "An option is given as a flag of `stillpoint run`, as an environment variable, or in the text of\n"
          "`sp_open` (`interval_ms=50 tracker=mprotect`). The flag wins over the variable. A number's flag without\n"
          "the unit in its name takes a value with a unit: `--interval 2s`, `--pool-size 1G`.\n");
    print_sections(
        option_rows(), "| flag | environment variable | values | default | meaning |\n|---|---|---|---|---|\n", [](const OptionRow& row) {
            const std::string_view fallback = row.default_text.empty() ? "none" : row.kind == OptionKind::flag ? "off" : row.default_text;
            print("| `{}` | `{}` | {} | {} | {} |\n", replaced(flags_of(row), ",", "`, `"), row.environment_name(), range_of(row), fallback,
                  row.sentence);
        });
}

/// `text` in roff: dashes are minus signs, and backticks surround bold words.
std::string roff_of(std::string_view text)
{
    std::string roff;
    bool bold = false;
    for (const char c : text) {
        if (c == '`') {
            bold = !bold;
            roff += bold ? "\\fB" : "\\fR";
        } else if (c == '-') {
            roff += "\\-";
        } else {
            roff += c;
        }
    }
    return roff;
}

/// The values of an option and its default, as a sentence after the option's own.
std::string values_of(const OptionRow& row)
{
    switch (row.kind) {
    case OptionKind::number: return text_of(" From {} to {}; the default is {}.", row.minimum, row.maximum, row.default_text);
    case OptionKind::choice:
        return text_of(" One of {}; the default is {}.", replaced(std::string(row.words), "|", ", "), row.default_text);
    case OptionKind::flag:
    case OptionKind::text: break;
    }
    return {};
}

/// Part of the manual pages of the commands that take these options; scripts/generate_docs.py puts it there.
void print_manual_options()
{
    std::string_view engine;
    for (const OptionRow& row : option_rows()) {
        if (row.engine != engine) {
            engine = row.engine;
            print(".SS Options of the engine {}\n", engine);
        }
        const std::string flags = row.name == "quiet" ? "-q," + flags_of(row) : flags_of(row);
        print(".TP\n\\fB{}\\fR", replaced(roff_of(flags), ",", "\\fR, \\fB"));
        print("{}\n{}\n", row.kind == OptionKind::flag ? std::string{} : text_of(" \\fI{}\\fR", value_word_of(row)),
              roff_of(std::string(row.sentence) + values_of(row)));
    }
}

void print_statistics()
{
    print("# Statistics\n\n"
          "Generated from `src/runtime/statistics.inc` and the engines' `statistics.inc` by `make docs`; do not edit.\n\n"
          "A running program keeps these in a page of shared memory; `stillpoint stats POOL` reads it without\n"
          "stopping anything, and `--json` prints every one under its name. Times are in nanoseconds; a point in\n"
          "time is on the monotonic clock. Statistics of another engine than the pool's are 0.\n");
    print_sections(statistic_rows(), "| name | unit | meaning |\n|---|---|---|\n",
                   [](const StatisticRow& row) { print("| `{}` | {} | {} |\n", row.name, row.unit, row.sentence); });
}

/// "code exit-code" for each error value; values are numbered from 0 without a gap.
void print_exit_codes()
{
    for (int code = SP_OK; code <= SP_E_DIVERGED; ++code) {
        print("{} {}\n", code, exit_code_for(static_cast<sp_error>(code)));
    }
}

std::string_view text_of_programs(Programs programs)
{
    switch (programs) {
    case Programs::locks: break;
    case Programs::critical_sections: return "critical-sections";
    case Programs::restart_points: return "restart-points";
    case Programs::operations: return "operations";
    case Programs::transactions: return "transactions";
    case Programs::typed_objects: return "typed-objects";
    }
    return "locks";
}

/// "name interval-ms programs tracker ..." for each engine of this build: tests/support/engines.py and bench/driver/engines.py read it.
void print_engines()
{
    for (const EngineDriver& driver : engine_drivers()) {
        print("{} {} {}", driver.format.name, driver.interval_ms, text_of_programs(driver.programs));
        for (const std::string_view tracker : driver.trackers) {
            print(" {}", tracker);
        }
        print("\n");
    }
}

}  // namespace

void add_tables(CLI::App& app, Invocation& invocation)
{
    CommandLine line(app, invocation, "tables", "Print a document made from a table.");
    line.hide();
    const auto name = std::make_shared<std::string>();
    line.positional("TABLE", *name, true, "options, manual-options, statistics, exit-codes or engines");
    line.on_use([name] {
        if (*name == "options") {
            print_options();
        } else if (*name == "manual-options") {
            print_manual_options();
        } else if (*name == "statistics") {
            print_statistics();
        } else if (*name == "exit-codes") {
            print_exit_codes();
        } else if (*name == "engines") {
            print_engines();
        } else {
            return report_error(exit_codes::usage, text_of("there is no table '{}'", *name));
        }
        return exit_codes::ok;
    });
}

}  // namespace stillpoint::tool

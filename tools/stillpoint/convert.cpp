// `stillpoint convert`: copies the objects of a pool into a new one for a program whose types have changed; the old pool is only read.

#include <algorithm>
#include <vector>

#include "api/registry.hpp"
#include "copied_pool.hpp"
#include "elf_file.hpp"
#include "json.hpp"
#include "new_file.hpp"
#include "pool_access.hpp"
#include "stillpoint/typed_fields.h"

namespace stillpoint::tool {

namespace {

constexpr std::string_view convert_examples = "  stillpoint convert list.pool new.pool --types ./list --dry-run    what would change\n"
                                              "  stillpoint convert list.pool new.pool --types ./list && mv new.pool list.pool\n"
                                              "  stillpoint convert list.pool new.pool --types ./list --drop Node.comment\n";

constexpr std::string_view convert_exit_codes =
    "  0 made, or --dry-run found nothing against it; 64 wrong usage, or a size that does not hold the objects;\n"
    "  65 data would be lost, damaged, or not a pool whose objects are known; 66 no such file, or PROGRAM\n"
    "  describes no types; 69 not available here; 71 no memory; 73 NEW exists, or no space; 74 input/output\n"
    "  error; 75 a process has the pool open; 77 no permission\n";

struct ConvertArguments {
    std::string path;
    std::string new_path;
    std::string program;
    std::vector<std::string> drops;
    std::uint64_t size_mb = 0;  ///< 0: not given
    bool dry_run = false;
    bool json = false;
    bool quiet = false;
};

void add_report(Json& json, const ConversionReport& report)
{
    json.boolean("refused", report.is_refused()).begin_array("types");
    for (const ConvertedType& type : report.types) {
        json.begin_object().text("type", type.name).number("objects", type.objects);
        json.number("element_bytes_before", type.element_bytes_before).number("element_bytes_after", type.element_bytes_after);
        json.boolean("described", type.is_described).begin_array("differences");
        for (const TypeDifference& difference : type.differences) {
            json.begin_object().text("text", difference.text).boolean("refused", difference.is_refused).end_object();
        }
        json.end_array().end_object();
    }
    json.end_array().number("problem_count", report.problem_count).begin_array("problems");
    for (const std::string& problem : report.problems) {
        json.element(problem);
    }
    json.end_array();
}

void print_json(const ConvertArguments& arguments, std::string_view engine, const ConversionReport& report)
{
    Json json;
    json.begin_object().text("pool", arguments.path).text("new", arguments.new_path).text("engine", engine);
    json.boolean("dry_run", arguments.dry_run);
    add_report(json, report);
    if (!report.is_refused()) {
        add_copy_figures(json, report.figures);
    }
    answer(std::move(json));
}

void print_types(const ConversionReport& report)
{
    print("  {:<24}{:>10}  {:>8}  ->{:>8}\n", "type", "objects", "bytes", "bytes");
    for (const ConvertedType& type : report.types) {
        print("  {:<24}{:>10}  {:>8}  ->{:>8}{}\n", type.name, type.objects, type.element_bytes_before, type.element_bytes_after,
              !type.is_described         ? "  not in the program: as it is"
              : type.differences.empty() ? "  as it is"
                                         : "");
        for (const TypeDifference& difference : type.differences) {
            print("    {}{}\n", difference.is_refused ? "refused: " : "", printable(difference.text));
        }
    }
    for (const std::string& problem : report.problems) {
        print("refused: {}\n", printable(problem));
    }
    if (report.problem_count > report.problems.size()) {
        print("refused: {} more objects\n", report.problem_count - report.problems.size());
    }
}

void print_text(const ConvertArguments& arguments, const ConversionReport& report)
{
    if (report.is_refused()) {
        print("{}: nothing was made of {}\n", arguments.new_path, arguments.path);
        print_types(report);
        return;
    }
    print("{}: {} from {}{}\n", arguments.new_path, arguments.dry_run ? "can be made" : "made", arguments.path,
          arguments.dry_run ? "; nothing was written" : ", and checked");
    print_types(report);
    print_copy_figures(report.figures);
}

/// Errors: invalid_argument (no program), pool_missing (no such file).
Result<std::string> types_of_program(const std::string& path)
{
    const ElfFile file(path);
    std::string types = file.contents(NVM_TYPES_SECTION);
    if (types.empty()) {
        return fail(SP_E_POOL_MISSING, 0,
                    "{} is no program or shared library that describes types of a pool: name the file in which NVM_AUTO_TYPE or NVM_TYPE "
                    "stands, compiled with this version of Stillpoint",
                    path);
    }
    return types;
}

int convert(const ConvertArguments& arguments, bool progress)
{
    const auto types = types_of_program(arguments.program);
    if (!types) {
        return report_failure(types.error());
    }
    const auto file = NewFile::at(arguments.new_path);
    if (!file) {
        return report_failure(file.error());
    }
    const auto opened = open_pool_to_read(arguments.path, true);
    if (!opened) {
        return report_failure(opened.error());
    }
    const std::string_view engine = opened->driver->format.name;
    if (opened->driver->convert == nullptr) {
        return refuse_engine(arguments.path, engine, "converted");
    }
    ConversionRequest request;
    request.made = {file->first_name(), arguments.size_mb * mib};
    request.types = *types;
    request.program = arguments.program;
    request.drops = arguments.drops;
    request.is_trial = arguments.dry_run;
    const ProgressLine line = progress_line(progress);
    const auto report = opened->driver->convert(opened->pool, request, line);
    erase(line);
    if (!report) {
        return report_failure(report.error());
    }
    if (!report->is_refused() && !arguments.dry_run) {
        if (auto published = file->publish(); !published) {
            return report_failure(published.error());
        }
    }
    if (arguments.json) {
        print_json(arguments, engine, *report);
    } else {
        print_text(arguments, *report);
    }
    return !report->is_refused()
               ? exit_codes::ok
               : report_error(exit_codes::data_error,
                              text_of("{}: what is marked as refused would be lost in {}: change the program, or allow it", arguments.path,
                                      arguments.new_path));
}

/// Fields, with commas between them. The error, empty if there is none.
std::string take_drops(const std::string& text, std::vector<std::string>& drops)
{
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        drops.push_back(text.substr(begin, end - begin));
        if (drops.back().find('.') == std::string::npos) {
            return "\"" + drops.back() + "\" does not name a type and a field, such as Node.comment";
        }
        begin = end + 1;
    }
    return "";
}

}  // namespace

void add_convert(CLI::App& app, Invocation& invocation)
{
    CommandLine line(app, invocation, "convert",
                     "Copy a pool that no program has open into a new one, for a program whose types have changed.");
    const auto arguments = std::make_shared<ConvertArguments>();
    line.positional("POOL", arguments->path, true, "Path of the pool file; it is only read.");
    line.positional("NEW", arguments->new_path, true, "Path of the new pool, which must not exist.");
    line.option(
        "--types", "PROGRAM",
        [arguments](const std::string& text) -> std::string {
            arguments->program = text;
            return "";
        },
        "The new program, or a shared library of it: its types are read, it does not run.");
    line.option(
        "--drop", "TYPE.FIELD,...", [arguments](const std::string& text) { return take_drops(text, arguments->drops); },
        "The data of these fields, which the program has no more, may be lost.");
    line.flag("--dry-run", arguments->dry_run, "Print what would change, type by type, and write nothing.");
    add_size_option(line, arguments->size_mb);
    line.json_flag(arguments->json, "Print one JSON object.");
    line.flag("-q,--quiet", arguments->quiet, "Print errors and results only: no progress.");
    line.footer(convert_examples, convert_exit_codes);
    line.on_use([arguments, &invocation] {
        return arguments->program.empty()
                   ? report_error(exit_codes::usage, "--types is required: name the new program, or a shared library of it")
                   : convert(*arguments, !arguments->quiet && !invocation.quiet);
    });
}

}  // namespace stillpoint::tool

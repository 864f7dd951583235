// `stillpoint compact`: copies the objects of a pool that can be reached into a new, smaller pool; the old one is only read.

#include <optional>

#include "api/registry.hpp"
#include "command.hpp"
#include "json.hpp"
#include "new_file.hpp"
#include "option_flags.hpp"
#include "pool_access.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::string_view examples =
    "  stillpoint compact list.pool small.pool              as small as the objects allow, and a sixteenth\n"
    "  stillpoint compact --size 256M list.pool small.pool  with room for more\n"
    "  stillpoint compact list.pool new.pool && mv new.pool list.pool\n";

constexpr std::string_view exit_code_lines =
    "  0 made; 64 wrong usage, or a size that does not hold the objects; 65 damaged, or not a pool whose\n"
    "  objects are known; 66 no such file; 69 not available here; 71 no memory; 73 NEW exists, or no space;\n"
    "  74 input/output error; 75 a process has the pool open; 77 no permission\n";

struct CompactArguments {
    std::string path;
    std::string new_path;
    std::uint64_t size_mb = 0;  ///< 0: not given
    bool json = false;
    bool quiet = false;
};

/// The engines that can do it, for a message.
std::string names_of_engines()
{
    std::string names;
    for (const EngineDriver& driver : every_engine_driver()) {
        if (driver.compact != nullptr) {
            names += names.empty() ? "" : " and ";
            names += driver.format.name;
        }
    }
    return names;
}

void print_json(const CompactArguments& arguments, std::string_view engine, const CompactionFigures& figures)
{
    Json json;
    json.begin_object().text("pool", arguments.path).text("new", arguments.new_path).text("engine", engine);
    json.number("objects_before", figures.objects_before).number("objects_after", figures.objects_after);
    json.number("left_out", figures.objects_before - figures.objects_after);
    json.number("object_bytes_before", figures.object_bytes_before).number("object_bytes_after", figures.object_bytes_after);
    json.number("image_bytes_before", figures.image_bytes_before).number("image_bytes_after", figures.image_bytes_after);
    json.number("file_bytes_before", figures.file_bytes_before).number("file_bytes_after", figures.file_bytes_after);
    print("{}\n", json.end_object().str());
}

void print_text(const CompactArguments& arguments, const CompactionFigures& figures)
{
    const auto row = [](std::string_view what, const std::string& before, const std::string& after) {
        print("  {:<12}{:>12}  ->{:>12}\n", what, before, after);
    };
    print("{}: made from {}, and checked\n", arguments.new_path, arguments.path);
    row("objects", std::to_string(figures.objects_before), std::to_string(figures.objects_after));
    row("their bytes", size_text(figures.object_bytes_before), size_text(figures.object_bytes_after));
    row("pool size", size_text(figures.image_bytes_before), size_text(figures.image_bytes_after));
    row("file size", size_text(figures.file_bytes_before), size_text(figures.file_bytes_after));
    const std::uint64_t left_out = figures.objects_before - figures.objects_after;
    print("{} object{} left out: nothing leads there from the root\n", left_out, left_out == 1 ? " was" : "s were");
}

int compact(const CompactArguments& arguments, bool progress)
{
    const auto file = NewFile::at(arguments.new_path);
    if (!file) {
        return report_failure(file.error());
    }
    const auto opened = open_pool_to_read(arguments.path, true);
    if (!opened) {
        return report_failure(opened.error());
    }
    const std::string_view engine = opened->driver->format.name;
    if (opened->driver->compact == nullptr) {
        return report_error(
            exit_codes::data_error,
            text_of("{}: the pool belongs to the engine {}, which does not know the types of a program's objects: only pools of {} "
                    "can be compacted",
                    arguments.path, engine, names_of_engines()));
    }
    const ProgressLine line = progress_line(progress);
    const auto figures = opened->driver->compact(opened->pool, {file->first_name(), arguments.size_mb * mib}, line);
    erase(line);
    if (!figures) {
        return report_failure(figures.error());
    }
    if (auto published = file->publish(); !published) {
        return report_failure(published.error());
    }
    if (arguments.json) {
        print_json(arguments, engine, *figures);
    } else {
        print_text(arguments, *figures);
    }
    return exit_codes::ok;
}

/// Takes a size with a unit into `value`, as --pool-size does.
std::function<std::string(const std::string&)> size_in_mb(std::uint64_t& value)
{
    return [&value](const std::string& text) -> std::string {
        const std::optional<std::uint64_t> size = parse_quantity("size_mb", text);
        constexpr std::uint64_t size_max = UINT64_MAX / mib;
        if (!size || *size == 0 || *size > size_max) {
            return "\"" + text + "\" is not a size of whole MiB, such as 64M or 2G";
        }
        value = *size;
        return "";
    };
}

}  // namespace

void add_compact(CLI::App& app, Invocation& invocation)
{
    CommandLine line(app, invocation, "compact", "Copy the live objects of a pool that no program has open into a new, smaller pool.");
    const auto arguments = std::make_shared<CompactArguments>();
    line.positional("POOL", arguments->path, true, "Path of the pool file; it is only read.");
    line.positional("NEW", arguments->new_path, true, "Path of the new pool, which must not exist.");
    line.option("--size", "SIZE", size_in_mb(arguments->size_mb),
                "Size of the new pool, e.g. 64M. Default: what the objects need and a sixteenth more, at least 4M.");
    line.flag("--json", arguments->json, "Print one JSON object.");
    line.flag("-q,--quiet", arguments->quiet, "Print errors and results only: no progress.");
    line.footer(examples, exit_code_lines);
    line.on_use([arguments, &invocation] { return compact(*arguments, !arguments->quiet && !invocation.quiet); });
}

}  // namespace stillpoint::tool

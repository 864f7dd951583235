// `stillpoint compact`: copies the objects of a pool that can be reached into a new, smaller pool; the old one is only read.

#include "api/registry.hpp"
#include "copied_pool.hpp"
#include "json.hpp"
#include "new_file.hpp"
#include "pool_access.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::string_view compact_examples =
    "  stillpoint compact list.pool small.pool              as small as the objects allow, and a sixteenth\n"
    "  stillpoint compact --size 256M list.pool small.pool  with room for more\n"
    "  stillpoint compact list.pool new.pool && mv new.pool list.pool\n";

constexpr std::string_view compact_exit_codes =
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

void print_json(const CompactArguments& arguments, std::string_view engine, const CompactionFigures& figures)
{
    Json json;
    json.begin_object().text("pool", arguments.path).text("new", arguments.new_path).text("engine", engine);
    add_copy_figures(json, figures);
    answer(std::move(json));
}

void print_text(const CompactArguments& arguments, const CompactionFigures& figures)
{
    print("{}: made from {}, and checked\n", arguments.new_path, arguments.path);
    print_copy_figures(figures);
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
        return refuse_engine(arguments.path, engine, "compacted");
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

}  // namespace

void add_compact(CLI::App& app, Invocation& invocation)
{
    CommandLine line(app, invocation, "compact", "Copy the live objects of a pool that no program has open into a new, smaller pool.");
    const auto arguments = std::make_shared<CompactArguments>();
    line.positional("POOL", arguments->path, true, "Path of the pool file; it is only read.");
    line.positional("NEW", arguments->new_path, true, "Path of the new pool, which must not exist.");
    add_size_option(line, arguments->size_mb);
    line.json_flag(arguments->json, "Print one JSON object.");
    line.flag("-q,--quiet", arguments->quiet, "Print errors and results only: no progress.");
    line.footer(compact_examples, compact_exit_codes);
    line.on_use([arguments, &invocation] { return compact(*arguments, !arguments->quiet && !invocation.quiet); });
}

}  // namespace stillpoint::tool

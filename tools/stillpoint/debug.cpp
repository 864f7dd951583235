// `stillpoint debug`: gdb on the memory of a pool at rest; the pool's file is only read.

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <span>
#include <unistd.h>
#include <utility>

#include "command.hpp"
#include "core_file.hpp"
#include "damaged_objects.hpp"
#include "installation.hpp"
#include "pool_image.hpp"
#include "program_types.hpp"
#include "typed_roots.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::string_view debug_examples =
    "  stillpoint debug bank.pool ./bank\n"
    "  stillpoint debug bank.pool ./bank -- --batch -ex 'print *$sp_root(\"accounts\", \"struct account\")'\n"
    "  stillpoint debug bank.pool -- --batch -ex 'stillpoint roots'\n"
    "  stillpoint debug list.pool ./list -- --batch -ex 'print $sp_root(\"root\")->next'\n";

constexpr std::string_view debug_exit_codes =
    "  gdb's own; before it starts 64 wrong usage; 65 damaged, or not a pool; 66 no such file; 69 gdb is not\n"
    "  installed; 71 no memory; 73 no room for a copy of the memory (TMPDIR); 74 input/output error; 75 a\n"
    "  process has the pool open (debug a copy of it); 77 no permission\n";

/// Segments of a core file are counted by 16 bits, of which the last value has another meaning.
constexpr std::size_t segments_max = 60'000;

struct DebugArguments {
    std::string path;
    std::string program;
};

/// The first of that name in PATH; empty: there is none.
std::string in_path(const std::string& name)
{
    const char* const variable = std::getenv("PATH");
    std::string_view folders = variable == nullptr ? "/usr/local/bin:/usr/bin:/bin" : variable;
    while (!folders.empty()) {
        const std::size_t end = std::min(folders.find(':'), folders.size());
        const std::string path = text_of("{}/{}", folders.substr(0, end), name);
        if (access(path.c_str(), X_OK) == 0) {
            return path;
        }
        folders.remove_prefix(std::min(end + 1, folders.size()));
    }
    return {};
}

/// The image, and over the program's own variables the values that the pool has of them.
std::vector<CoreSegment> segments_of(const PoolImage& image, ProgramTypes* program)
{
    std::vector<CoreSegment> segments = {{image.base_address(), image.bytes()}};
    for (const KeptGlobal& global : image.globals()) {
        const auto variable = program != nullptr && !global.name.empty() ? program->find_variable(global.name, global.scope) : std::nullopt;
        const bool is_usable = variable && !global.retired && program->type(variable->type).size == global.size_bytes;
        if (is_usable && segments.size() < segments_max) {
            segments.push_back({variable->address, image.at(global.address, global.size_bytes)});
        }
    }
    return segments;
}

struct PoolCore {
    std::uint64_t base = 0;          ///< where the pool's memory lies; 0: damage lets nothing be shown
    Result<os::Descriptor> file{};
    std::vector<Failure> damages;
};

Result<os::Descriptor> write_core(const std::vector<CoreSegment>& segments)
{
    const char* const folder = std::getenv("TMPDIR");
    return write_core_file(folder == nullptr || *folder == '\0' ? "/tmp" : folder, segments);
}

/// Errors: as visit_pool_image().
Result<PoolCore> core_of_image(const OpenedPool& opened, ProgramTypes* program, bool progress)
{
    PoolCore core;
    auto verified = visit_pool_image(opened, progress, [&](const PoolImage& image) {
        core.base = image.base_address();
        core.file = write_core(segments_of(image, program));
    });
    if (!verified) {
        return pass_on(verified.error());
    }
    core.damages = std::move(verified->damages);
    return core;
}

/// As core_of_image(), where the engine maps pools without a session. Errors: as EngineDriver::show_memory.
Result<PoolCore> core_of_memory(const OpenedPool& opened, bool progress)
{
    PoolCore core;
    DamagedObjects damaged;
    const auto keep = [](void* kept, std::span<const std::byte> memory) {
        auto& made = *static_cast<PoolCore*>(kept);
        made.base = reinterpret_cast<std::uintptr_t>(memory.data());
        made.file = write_core({{made.base, memory}});
    };
    const ProgressLine line = progress_line(progress);
    const auto shown = opened.driver->show_memory(opened.pool, damaged, keep, &core, line);
    erase(line);
    if (!shown) {
        return pass_on(shown.error());
    }
    core.damages = std::move(damaged.kept);
    return core;
}

int start_gdb(const std::string& gdb, const DebugArguments& arguments, std::uint64_t base, const os::Descriptor& core,
              const std::vector<std::string>& options)
{
    const std::string script = gdb_script();
    std::vector<std::string> words = {gdb, "--quiet", "-iex", text_of("python stillpoint_bases = [{:#x}]", base)};
    words.insert(words.end(), {"--core", text_of("/proc/self/fd/{}", core.get())});
    if (!arguments.program.empty()) {
        words.insert(words.end(), {"--se", arguments.program});
    }
    if (!script.empty()) {
        words.insert(words.end(), {"-x", script});
    }
    words.insert(words.end(), options.begin(), options.end());
    std::vector<char*> pointers;
    for (std::string& word : words) {
        pointers.push_back(word.data());
    }
    pointers.push_back(nullptr);
    execv(gdb.c_str(), pointers.data());
    return report_error(exit_codes::unavailable, text_of("{} cannot be started: {}", gdb, std::strerror(errno)));
}

int debug(const DebugArguments& arguments, const std::vector<std::string>& options, bool progress)
{
    const std::string gdb = in_path("gdb");
    if (gdb.empty()) {
        return report_error(exit_codes::unavailable, "there is no gdb in PATH: apt-get install gdb", {.next = "apt-get install gdb"});
    }
    const auto opened = open_pool_to_read(arguments.path, true);
    if (!opened) {
        return report_unopened(arguments.path, opened.error());
    }
    if (!arguments.program.empty() && access(arguments.program.c_str(), R_OK) != 0) {
        return report_error(errno == EACCES ? exit_codes::no_permission : exit_codes::no_input,
                            text_of("{}: {}", arguments.program, std::strerror(errno)));
    }
    // Without debug information gdb still shows the pool's memory.
    auto program = arguments.program.empty() ? nullptr : ProgramTypes::open(arguments.program).value_or(nullptr);
    const auto core = opened->driver->show_memory != nullptr ? core_of_memory(*opened, progress)
                                                             : core_of_image(*opened, program.get(), progress);
    if (!core) {
        return report_failure(core.error());
    }
    for (const Failure& damage : core->damages) {
        print_error("stillpoint: damaged: {}\n", printable(damage.text()));
    }
    if (core->base == 0) {
        return report_failure(core->damages.front());  // The header of the image, without which nothing can be shown.
    }
    if (!core->file) {
        return report_failure(core->file.error());
    }
    return start_gdb(gdb, arguments, core->base, *core->file, options);
}

}  // namespace

void add_debug(CLI::App& app, Invocation& invocation)
{
    CommandLine line(app, invocation, "debug", "Start gdb on the memory of a pool that no program has open.");
    const auto arguments = std::make_shared<DebugArguments>();
    line.positional("POOL", arguments->path, true, "Path of the pool file; it is only read.");
    line.positional("PROGRAM", arguments->program, false, "The program, for its types and variables; what comes after \"--\" is for gdb.");
    line.footer(debug_examples, debug_exit_codes);
    line.on_use([arguments, &invocation] { return debug(*arguments, invocation.command, !invocation.quiet); });
}

}  // namespace stillpoint::tool

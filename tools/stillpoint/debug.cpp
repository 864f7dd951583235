// `stillpoint debug`: gdb on the memory of a pool at rest; the pool's file is only read.

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

#include "command.hpp"
#include "core_file.hpp"
#include "installation.hpp"
#include "pool_image.hpp"
#include "program_types.hpp"
#include "typed_roots.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::string_view examples =
    "  stillpoint debug bank.pool ./bank\n"
    "  stillpoint debug bank.pool ./bank -- --batch -ex 'print *$sp_root(\"accounts\", \"struct account\")'\n"
    "  stillpoint debug bank.pool -- --batch -ex 'stillpoint roots'\n";

constexpr std::string_view exit_code_lines =
    "  gdb's own; before it starts 64 wrong usage; 65 damaged, or not a pool; 66 no such file; 69 gdb is not\n"
    "  installed, or a pool without handles; 71 no memory; 73 no room for a copy of the memory (TMPDIR);\n"
    "  74 input/output error; 75 a process has the pool open (debug a copy of it); 77 no permission\n";

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
    const char* const folder = std::getenv("TMPDIR");
    Result<os::Descriptor> core{};
    std::uint64_t base = 0;
    const auto verified = visit_pool_image(*opened, progress, [&](const PoolImage& image) {
        base = image.base_address();
        core = write_core_file(folder == nullptr || *folder == '\0' ? "/tmp" : folder, segments_of(image, program.get()));
    });
    if (!verified) {
        return report_failure(verified.error());
    }
    for (const Failure& damage : verified->damages) {
        print_error("stillpoint: damaged: {}\n", printable(damage.text()));
    }
    if (base == 0) {
        return report_failure(verified->damages.front());  // The header of the image, without which nothing can be shown.
    }
    if (!core) {
        return report_failure(core.error());
    }
    return start_gdb(gdb, arguments, base, *core, options);
}

}  // namespace

void add_debug(CLI::App& app, Invocation& invocation)
{
    CommandLine line(app, invocation, "debug", "Start gdb on the memory of a pool that no program has open.");
    const auto arguments = std::make_shared<DebugArguments>();
    line.positional("POOL", arguments->path, true, "Path of the pool file; it is only read.");
    line.positional("PROGRAM", arguments->program, false, "The program, for its types and variables; what comes after \"--\" is for gdb.");
    line.footer(examples, exit_code_lines);
    line.on_use([arguments, &invocation] { return debug(*arguments, invocation.command, !invocation.quiet); });
}

}  // namespace stillpoint::tool

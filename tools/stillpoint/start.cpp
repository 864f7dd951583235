#include "start.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <unistd.h>

#include "api/options.hpp"
#include "api/registry.hpp"
#include "api/session.hpp"
#include "api/session_pool.hpp"
#include "command.hpp"
#include "installation.hpp"

namespace stillpoint::tool {

namespace {

bool preloaded(std::string_view list) { return list.find("libstillpoint.so") != std::string_view::npos; }

/// The library beside this executable. The folder is resolved but the name is kept: the loader knows the
/// library by it.
std::string find_library(std::string_view name)
{
    const std::string folder = library_folder();
    return folder.empty() ? folder : text_of("{}/{}", folder, name);
}

void prepend(const char* variable, std::string_view value, char separator = ':')
{
    const char* present = std::getenv(variable);
    const bool empty = present == nullptr || *present == '\0';
    setenv(variable, empty ? std::string(value).c_str() : text_of("{}{}{}", value, separator, present).c_str(), 1);
}

/// Options of tools that the program may run under, perhaps by way of a script. Those that the user gave come later and
/// win. Programs without such a tool do not look at them.
void set_environment_of_tools()
{
    // A page fault finds writes where userfaultfd is missing, as it is under valgrind; a handler of one sees, and gives
    // back, only some of the registers unless this is said.
    prepend("VALGRIND_OPTS", "--vex-iropt-register-updates=allregs-at-mem-access", ' ');
    // GCC's libasan refuses any library that is preloaded before it. This one replaces nothing of what it does.
    prepend("ASAN_OPTIONS", "verify_asan_link_order=0");
}

/// Puts the library into the environment. The loader splits LD_PRELOAD at spaces and colons, and
/// LD_LIBRARY_PATH at colons and semicolons; both expand "$".
tl::expected<void, Refusal> set_preload(std::string_view name)
{
    const std::string library = find_library(name);
    if (library.empty()) {
        return tl::unexpected(Refusal{exit_codes::unavailable, text_of("{} is missing beside {}: install Stillpoint again, or build "
                                                                       "it whole (make)",
                                                                       name, own_folder())});
    }
    if (library.find_first_of(":;$") != std::string::npos) {
        return tl::unexpected(Refusal{exit_codes::unavailable, text_of("{}: the dynamic loader cannot take a path with ':', ';' or '$'. "
                                                                       "Move Stillpoint to another folder",
                                                                       library)});
    }
    if (library.find_first_of(" \t\n") == std::string::npos) {
        prepend("LD_PRELOAD", library);
        return {};
    }
    prepend("LD_LIBRARY_PATH", library.substr(0, library.rfind('/')));
    prepend("LD_PRELOAD", name);
    return {};
}

/// Empty: there is no such thing to run, and the error says why.
std::string error_in(const std::vector<std::string>& command, std::string_view subcommand)
{
    if (command.empty()) {
        return text_of("which program? stillpoint {} [OPTIONS] -- PROGRAM [ARGUMENTS]", subcommand);
    }
    if (command.front().starts_with("-")) {
        return text_of("{0} has no option {1} (see `stillpoint {0} --help`); the program's own options come after its name", subcommand,
                       command.front());
    }
    return {};
}

bool wants_shared_heap(const Options& options)
{
    const EngineDriver* const driver = find_engine(engine_of_next_opening(options));
    return driver != nullptr && driver->wants_shared_heap != nullptr && driver->wants_shared_heap(options);
}

void set_environment(const RuntimeFlags& arguments)
{
    for (const auto& [name, value] : arguments.environment) {
        setenv(name.c_str(), value.c_str(), 1);
    }
    // The library sets it to the process that opens the pool. What is left of an earlier run would keep this
    // program out.
    unsetenv("STILLPOINT_OWNER");
    set_environment_of_tools();
}

}  // namespace

tl::expected<Start, Refusal> prepare_start(const RuntimeFlags& flags, const std::vector<std::string>& command, std::string_view subcommand)
{
    const char* preload = std::getenv("LD_PRELOAD");
    if (preload != nullptr && preloaded(preload)) {
        return tl::unexpected(
            Refusal{exit_codes::usage, text_of("nested `stillpoint {}`: this process runs under one already, and one program has one "
                                               "pool. Start the inner program without `stillpoint run`, or unset LD_PRELOAD",
                                               subcommand)});
    }
    if (const std::string error = error_in(command, subcommand); !error.empty()) {
        return tl::unexpected(Refusal{exit_codes::usage, error});
    }
    auto program = find_program(command.front());
    if (!program) {
        return tl::unexpected(program.error());
    }
    if (const auto fit = examine_program(*program); !fit) {
        return tl::unexpected(fit.error());
    }
    if (const auto set = set_preload(library_name); !set) {
        return tl::unexpected(set.error());
    }
    set_environment(flags);
    const auto options = options_from_environment();
    const auto fit = options ? check_options(*options) : Result<void>(tl::unexpected(options.error()));
    if (!fit) {
        return tl::unexpected(Refusal{exit_code_for(fit.error().code), std::string(fit.error().text())});
    }
    if (wants_shared_heap(*options)) {
        if (const auto set = set_preload(heap_library_name); !set) {
            return tl::unexpected(set.error());
        }
    }
    return Start{std::move(*program), *options};
}

int become_program(const std::string& program, std::vector<std::string> command)
{
    std::vector<char*> pointers;
    for (std::string& word : command) {
        pointers.push_back(word.data());
    }
    pointers.push_back(nullptr);
    execv(program.c_str(), pointers.data());
    return report_error(exit_codes::not_runnable, text_of("cannot run {}: {}", program, std::strerror(errno)));
}

}  // namespace stillpoint::tool

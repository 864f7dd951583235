#include "compiler.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>

#include "api/options.hpp"
#include "command.hpp"
#include "command_words.hpp"
#include "compiler_arguments.hpp"
#include "compiler_layer.hpp"
#include "compiler_unknown_calls.hpp"
#include "response_file.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::string_view help =
    "Compile a program for a runtime of durable memory: Clang, with the plugin that finds the stores.\n"
    "\n"
    "  stillpoint cc [COMPILER'S ARGUMENTS]       C; also stillpoint-cc, for a CC of one word\n"
    "  stillpoint c++ [COMPILER'S ARGUMENTS]      C++; also stillpoint-c++\n"
    "\n"
    "Every argument is Clang's (--help prints Clang's own help), but for these:\n"
    "  --runtime=NAME|FILE                the adaptation layer: a name, or the path of a layer.yaml\n"
    "                                     (default: STILLPOINT_RUNTIME, otherwise that of the default engine)\n"
    "  --lint                             for `stillpoint lint`: the same as --runtime=lint; or, after\n"
    "                                     --runtime= of a layer that has a lint.yaml, with that\n"
    "  -Wno-stillpoint-unknown-call       do not warn of calls that may write durable memory without hooks.\n"
    "                                     The command that links warns, once for each function;\n"
    "                                     with -Wstillpoint-unknown-call each compilation does, for each\n"
    "                                     call, and -Werror=stillpoint-unknown-call makes errors of them\n"
    "  --stillpoint-show                  print the command, do not run it\n"
    "  --stillpoint-files                 print the files that the output depends on besides the sources:\n"
    "                                     CCACHE_EXTRAFILES=$(stillpoint cc --stillpoint-files)\n"
    "  --stillpoint-help                  this text\n"
    "\n"
    "Environment: STILLPOINT_RUNTIME; STILLPOINT_CLANG and STILLPOINT_CLANGXX, the Clang to use.\n"
    "\n"
    "Examples:\n"
    "  stillpoint cc -O2 -g bank.c -o bank -pthread && stillpoint run --pool bank.pool -- ./bank\n"
    "  ./configure CC=stillpoint-cc CXX=stillpoint-c++\n"
    "  cmake -B build -DCMAKE_C_COMPILER=stillpoint-cc -DCMAKE_CXX_COMPILER=stillpoint-c++\n"
    "\n"
    "Exit codes:\n"
    "  Clang's own, once it runs. Before that: 64 wrong use of an option above; 65 a malformed\n"
    "  link.flags; 66 no such layer, or it cannot be read; 69 no plugin, or no Clang of its version.\n";

std::string runtime_of(const CompilerArguments& arguments)
{
    const char* const variable = std::getenv("STILLPOINT_RUNTIME");
    const std::string usual = variable != nullptr && *variable != '\0' ? variable : std::string(default_engine());
    if (arguments.runtime == "lint") {
        // A layer whose programs are linted by rules of their own has a configuration for that.
        const auto linted = find_layer(arguments.linted_runtime.empty() ? usual : arguments.linted_runtime);
        const std::string own = linted ? linted->folder + "/lint.yaml" : "";
        return !own.empty() && access(own.c_str(), R_OK) == 0 ? own : "lint";
    }
    return arguments.runtime.empty() ? usual : arguments.runtime;
}

/// For the front end only (-Xclang): the assembler would refuse -mllvm options of a plugin that it does not load.
void add_plugin_option(std::vector<std::string>& words, const std::string& option)
{
    words.insert(words.end(), {"-Xclang", "-mllvm", "-Xclang", option});
}

/// A folder of headers for the end of the user's own, before the system's. The system's own are left out: naming
/// them would move them before the C++ library's, whose #include_next then finds nothing.
void add_header_folder(std::vector<std::string>& words, const std::string& folder)
{
    if (!folder.empty() && folder != "/usr/include" && folder != "/usr/local/include") {
        words.insert(words.end(), {"-isystem", folder});
    }
}

/// The plugin reads structures from debug information, which goes again unless the user has asked for it.
void add_type_descriptions(std::vector<std::string>& words, const CompilerArguments& arguments)
{
    words.insert(words.end(), {"-DSTILLPOINT_DESCRIBES_TYPES", "-g"});
    const bool is_wanted = std::any_of(arguments.words.begin(), arguments.words.end(),
                                       [](const std::string& word) { return word.starts_with("-g") && word != "-g0"; });
    if (!is_wanted) {
        add_plugin_option(words, "-stillpoint-drop-debug-info");
    }
}

/// Where a command takes no more words than the system passes on, they go through a response file.
int become(const std::vector<std::string>& words)
{
    const auto execute = [](std::vector<std::string> list) {
        std::vector<char*> pointers;
        for (std::string& word : list) {
            pointers.push_back(word.data());
        }
        pointers.push_back(nullptr);
        execv(list.front().c_str(), pointers.data());
        return errno;
    };
    int failure = execute(words);
    if (failure == E2BIG) {
        const std::string file = response_file_in_memory({words.begin() + 1, words.end()});
        failure = file.empty() ? E2BIG : execute({words.front(), "@" + file});
    }
    return report_error(exit_codes::not_runnable, text_of("cannot run {}: {}", words.front(), std::strerror(failure)));
}

/// Runs Clang, and reports on what it linked. Its exit code; 1 where the report is an error, and there is no output then.
int link_and_report(const std::vector<std::string>& words, const CompilerArguments& arguments)
{
    const pid_t child = fork();
    if (child <= 0) {
        return become(words);  // without a process of its own there is no report
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status)) {
        return 128 + WTERMSIG(status);
    }
    if (WEXITSTATUS(status) != 0) {
        return WEXITSTATUS(status);
    }
    const std::string output = arguments.output.empty() ? "a.out" : arguments.output;
    const bool as_errors = arguments.unknown_call == "error";
    std::vector<std::string> folders = arguments.libraries;
    folders.push_back(library_folder());
    const auto calls = unknown_calls_in(output, folders);
    print_error("{}", text_of_unknown_calls(calls, as_errors));
    if (as_errors && !calls.empty()) {
        unlink(output.c_str());
        return 1;
    }
    return exit_codes::ok;
}

/// The whole command line of Clang.
tl::expected<std::vector<std::string>, Refusal> clang_command(Language language, const CompilerArguments& arguments,
                                                              const CompilerChoice& choice, const CompilerLayer& layer)
{
    std::vector<std::string> words = {choice.clang};
    if (language == Language::cpp && !choice.is_for_cpp) {
        words.emplace_back("--driver-mode=g++");
    }
    words.insert(words.end(), {"--start-no-unused-arguments", "-fplugin=" + choice.plugin.path, "-fpass-plugin=" + choice.plugin.path});
    add_plugin_option(words, "-stillpoint-runtime=" + layer.configuration);
    add_plugin_option(words, "-stillpoint-unknown-call=" + (arguments.unknown_call.empty() ? "record" : arguments.unknown_call));
    add_header_folder(words, include_folder());
    if (const std::string folder = include_folder(); !folder.empty()) {
        words.insert(words.end(), {"-isystem", folder + "/stillpoint/libstdcxx"});
    }
    add_header_folder(words, layer.folder);
    if (arguments.runtime == "lint") {
        words.emplace_back("-DSTILLPOINT_LINT");  // Headers call the library where they would read durable memory themselves.
    }
    if (describes_types(layer)) {
        add_type_descriptions(words, arguments);
    }
    words.emplace_back("--end-no-unused-arguments");
    words.insert(words.end(), arguments.words.begin(), arguments.words.end());
    if (!arguments.links) {
        return words;
    }
    const auto flags = link_flags(layer);
    if (!flags) {
        return tl::unexpected(flags.error());
    }
    const bool adds_files = std::any_of(flags->begin(), flags->end(), [](const auto& flag) { return !flag.starts_with("-"); });
    if (arguments.names_a_language && adds_files) {  // else Clang says that it has no effect
        words.insert(words.end(), {"-x", "none"});
    }
    words.insert(words.end(), flags->begin(), flags->end());
    return words;
}

int report(const Refusal& refusal) { return report_error(refusal.exit_code, refusal.message); }

}  // namespace

std::optional<CompilerCall> compiler_call(int argc, char** argv)
{
    std::string_view name = argc > 0 ? argv[0] : "";
    name = name.substr(name.rfind('/') + 1);
    if (name == "stillpoint-cc" || name == "stillpoint-c++") {
        return CompilerCall{name == "stillpoint-cc" ? Language::c : Language::cpp, {argv + 1, argv + argc}};
    }
    int at = 1;
    while (at < argc && (std::string_view(argv[at]) == "-q" || std::string_view(argv[at]) == "--quiet")) {
        ++at;  // there is nothing that it would silence
    }
    const std::string_view subcommand = at < argc ? argv[at] : "";
    if (subcommand == "cc" || subcommand == "c++") {
        return CompilerCall{subcommand == "cc" ? Language::c : Language::cpp, {argv + at + 1, argv + argc}};
    }
    return std::nullopt;
}

int run_compiler(const CompilerCall& call)
{
    const CompilerArguments arguments = read_compiler_arguments(call.words);
    if (arguments.help) {
        print("{}", help);
        return exit_codes::ok;
    }
    if (!arguments.error.empty()) {
        return report_error(exit_codes::usage, arguments.error);
    }
    const auto layer = find_layer(runtime_of(arguments));
    if (!layer) {
        return report(layer.error());
    }
    const auto choice = choose_clang(call.language);
    if (!choice) {
        return report(choice.error());
    }
    if (arguments.list_files) {
        std::string list = choice->plugin.path;
        for (const std::string& file : files_of(*layer)) {
            list += ":" + file;
        }
        print("{}\n", list);
        return exit_codes::ok;
    }
    if (arguments.is_frontend) {
        std::vector<std::string> words = {choice->clang};
        words.insert(words.end(), arguments.words.begin(), arguments.words.end());
        return become(words);
    }
    const auto words = clang_command(call.language, arguments, *choice, *layer);
    if (!words) {
        return report(words.error());
    }
    if (arguments.show) {
        print("{}\n", shell_text(*words));
        return exit_codes::ok;
    }
    return arguments.links && arguments.unknown_call != "off" ? link_and_report(*words, arguments) : become(*words);
}

void add_compilers(CLI::App& app, Invocation& invocation)
{
    const auto add = [&](Language language, const char* name, const std::string& sentence) {
        CommandLine line(app, invocation, name, sentence + " Its own help: --stillpoint-help.");
        line.ends_with_a_command();
        line.on_use([line, language] { return run_compiler({language, line.command()}); });
    };
    add(Language::c, "cc", "Compile C for a runtime of durable memory; every argument is Clang's.");
    add(Language::cpp, "c++", "Compile C++ likewise.");
}

}  // namespace stillpoint::tool

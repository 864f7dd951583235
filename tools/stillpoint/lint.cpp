// `stillpoint lint`: runs a program that was compiled for it, and says where it breaks the rules of durable memory: write it inside a FASE
// only, or keep the rules of restart points; and let it point to durable memory only.

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/registry.hpp"
#include "command.hpp"
#include "instrumentation.hpp"
#include "lint_findings.hpp"
#include "lint_suppressions.hpp"
#include "os/descriptor.hpp"
#include "os/file_size_limit.hpp"
#include "runtime/engine.hpp"
#include "start.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::string_view lint_examples = "  stillpoint cc --lint -g bank.c -o bank -pthread\n"
                                           "  stillpoint lint -- ./bank --threads 2\n"
                                           "  stillpoint lint --suppress known.txt --json --output report.json -- ./bank\n"
                                           "known.txt has lines as function:init_*, file:third_party/ or module:libfoo.so.\n";

constexpr std::string_view lint_exit_codes =
    "  0 nothing was found, and the program ended with 0; 1 something was found; otherwise the program's own\n"
    "  (128 and the signal's number where one killed it). Before it runs: those of `run`, and 126 where\n"
    "  the program was compiled neither with --lint nor for a layer with restart points; 65 and 66 for the file of suppressions.\n";

struct LintPlan {
    std::shared_ptr<RuntimeFlags> runtime = std::make_shared<RuntimeFlags>();
    std::string suppressions;
    std::string output;  ///< path; empty: standard error
    bool as_json = false;
};

/// A folder that is gone with this object.
class TemporaryFolder {
public:
    TemporaryFolder()
    {
        const char* const place = std::getenv("TMPDIR");
        path_ = text_of("{}/stillpoint-lint-XXXXXX", place != nullptr && *place != '\0' ? place : "/tmp");
        is_there_ = mkdtemp(path_.data()) != nullptr;
    }
    ~TemporaryFolder()
    {
        std::error_code ignored;  // Leftovers are harmless: the folder is temporary.
        if (is_there_) {
            std::filesystem::remove_all(path_, ignored);
        }
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    [[nodiscard]] bool is_there() const { return is_there_; }
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    std::string path_;
    bool is_there_ = false;
};

/// This process's environment as it was: what is set for the program must not reach a symbolizer.
class KeptEnvironment {
public:
    KeptEnvironment()
    {
        for (char** variable = environ; *variable != nullptr; ++variable) {
            variables_.emplace_back(*variable);
        }
    }
    void put_back() const
    {
        clearenv();
        for (const std::string& variable : variables_) {
            const std::size_t equals = variable.find('=');
            setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
        }
    }

private:
    std::vector<std::string> variables_;
};

/// The file that the program writes to while it runs. nullptr: errno says why.
lint::Report* make_report(const std::string& path)
{
    const os::Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    const os::FileSizeSignalHeld held;
    if (!file.valid() || ftruncate(file.get(), sizeof(lint::Report)) != 0) {
        return nullptr;
    }
    void* const memory = mmap(nullptr, sizeof(lint::Report), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (memory == MAP_FAILED) {
        return nullptr;
    }
    auto* const report = static_cast<lint::Report*>(memory);
    report->magic = lint::report_magic;
    return report;
}

volatile std::sig_atomic_t running_child = 0;

void forward(int signal) { kill(running_child, signal); }

/// Runs the program in the foreground of the terminal, as a shell would. Its wait status; -1 if it cannot be started.
int run_and_wait(const std::string& program, const std::vector<std::string>& command)
{
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        std::_Exit(become_program(program, command));
    }
    if (child < 0) {
        return -1;
    }
    running_child = child;
    // Ctrl-C is the program's: what it had found by then is told.
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGQUIT, SIG_IGN);
    std::signal(SIGTERM, &forward);
    std::signal(SIGHUP, &forward);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

/// The engine that the program's layer is for, which has rules of its own; nullptr: any, and those of FASEs are checked.
tl::expected<const EngineDriver*, Refusal> examine_instrumentation(const std::string& program)
{
    const std::vector<std::string> layers = layers_in(program);
    const auto has = [&layers](std::string_view layer) { return std::find(layers.begin(), layers.end(), layer) != layers.end(); };
    for (const EngineDriver& engine : engine_drivers()) {
        if (!engine.lint.layer.empty() && has(engine.lint.layer)) {
            return &engine;
        }
    }
    if (has("lint")) {
        return nullptr;
    }
    const std::string first = layers.empty() ? "" : layers.front();
    const bool has_own_rules = std::any_of(engine_drivers().begin(), engine_drivers().end(),
                                           [&first](const EngineDriver& engine) { return engine.lint.layer == first + "-lint"; });
    const std::string options = has_own_rules ? text_of("--runtime={} --lint -g", first) : "--lint -g";
    const std::string how = text_of("compile and link it with `stillpoint cc {0}` (C++: `stillpoint c++ {0}`)", options);
    return tl::unexpected(Refusal{exit_codes::not_runnable,
                                  layers.empty()
                                      ? text_of("{} is not instrumented: its stores cannot be seen. To have it linted, {}", program, how)
                                      : text_of("{} was compiled for the layer {}: its stores are not reported. To have it linted, {}",
                                                program, layers.front(), how)});
}

/// The pool that the program gets where the user names none.
void use_temporary_pool(RuntimeFlags& flags, const std::string& folder)
{
    const char* const variable = std::getenv("STILLPOINT_POOL");
    if (flags.environment.contains("STILLPOINT_POOL") || (variable != nullptr && *variable != '\0')) {
        return;
    }
    flags.environment["STILLPOINT_POOL"] = folder + "/pool";
    flags.environment.emplace("STILLPOINT_DURABILITY", "process");
    flags.environment["STILLPOINT_QUIET"] = "1";  // This pool is not the user's.
}

/// Empty: done; else why not.
std::string use_engine(const EngineDriver& engine)
{
    const char* const chosen = std::getenv("STILLPOINT_ENGINE");
    if (chosen != nullptr && *chosen != '\0' && engine.format.name != std::string_view(chosen)) {
        return text_of("the program was compiled for the layer {}, which needs the engine {}, not {}", engine.lint.layer,
                       engine.format.name, chosen);
    }
    setenv("STILLPOINT_ENGINE", std::string(engine.format.name).c_str(), 1);
    return {};
}

/// How the program ended, for a person; empty: with 0.
std::string how_it_ended(int status)
{
    if (WIFSIGNALED(status)) {
        return text_of("the program was killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
    }
    return WEXITSTATUS(status) == 0 ? "" : text_of("the program ended with exit code {}", WEXITSTATUS(status));
}

/// Writes the whole text. Empty: done; else why not.
std::string write_to(const std::string& path, const std::string& text)
{
    std::FILE* const file = std::fopen(path.c_str(), "w");
    bool is_written = file != nullptr && std::fputs(text.c_str(), file) >= 0;
    is_written = file != nullptr && std::fclose(file) == 0 && is_written;
    return is_written ? "" : std::strerror(errno);
}

std::string summary(const LintFindings& findings, const std::string& ending)
{
    const auto places = [](std::uint64_t count) { return text_of("{} place{}", count, count == 1 ? "" : "s"); };
    std::string text = findings.list.empty() ? std::string("stillpoint lint: nothing was found")
                                             : text_of("stillpoint lint: {}", places(findings.list.size()));
    text += findings.suppressed > 0 ? text_of(", {} suppressed", places(findings.suppressed)) : "";
    text += findings.lost > 0 ? text_of("; {} more findings did not fit into the report", findings.lost) : "";
    return text + (ending.empty() ? "\n" : text_of("; {}\n", ending));
}

/// Prints the report and tells the exit code.
int conclude(const LintPlan& plan, const LintFindings& findings, int status, bool quiet)
{
    const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    const bool is_clean = findings.list.empty() && findings.lost == 0;
    const std::string text =
        plan.as_json ? json_of_findings(findings, WIFSIGNALED(status) ? 0 : code, WIFSIGNALED(status) ? WTERMSIG(status) : 0) + "\n"
                     : text_of_findings(findings);
    if (plan.output.empty()) {
        print_error("{}", text);
    } else if (const std::string reason = write_to(plan.output, text); !reason.empty()) {
        return report_error(exit_codes::input_output, text_of("cannot write the report to {}: {}", plan.output, reason));
    }
    if (!plan.as_json && !(quiet && is_clean)) {
        print_error("{}", summary(findings, how_it_ended(status)));
    }
    return is_clean ? code : exit_codes::found;
}

int lint_program(const LintPlan& plan, const std::vector<std::string>& command, bool quiet)
{
    std::vector<Suppression> suppressions;
    if (!plan.suppressions.empty()) {
        auto read = read_suppressions(plan.suppressions);
        if (!read) {
            return report_error(read.error().exit_code, read.error().message);
        }
        suppressions = std::move(*read);
    }
    const TemporaryFolder folder;
    lint::Report* const report = folder.is_there() ? make_report(folder.path() + "/report") : nullptr;
    if (report == nullptr) {
        return report_error(exit_codes::no_space, text_of("cannot make the report in {}: {}. Set TMPDIR to a folder with room "
                                                          "for it",
                                                          folder.path(), std::strerror(errno)));
    }
    const KeptEnvironment environment;
    use_temporary_pool(*plan.runtime, folder.path());
    const auto start = prepare_start(*plan.runtime, command, "lint");
    if (!start) {
        return report_error(start.error().exit_code, start.error().message);
    }
    const auto examined = examine_instrumentation(start->program);
    if (!examined) {
        return report_error(examined.error().exit_code, examined.error().message);
    }
    if (const EngineDriver* const engine = *examined; engine != nullptr) {
        if (const std::string error = use_engine(*engine); !error.empty()) {
            return report_error(exit_codes::usage, error);
        }
        engine->format.name.copy(report->engine, sizeof report->engine - 1);
    }
    setenv(lint::report_variable, (folder.path() + "/report").c_str(), 1);
    const int status = run_and_wait(start->program, command);
    environment.put_back();
    if (status < 0) {
        return report_error(exit_codes::system_error, text_of("cannot start {}: {}", start->program, std::strerror(errno)));
    }
    LintFindings findings = read_findings(*report);
    if (report->attached.load() == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        return report_error(exit_codes::not_runnable, text_of("no instrumented code ran in {}: nothing can be reported", start->program));
    }
    suppress(findings, suppressions);
    return conclude(plan, findings, status, quiet);
}

}  // namespace

void add_lint(CLI::App& app, Invocation& invocation)
{
    CommandLine line(app, invocation, "lint",
                     "Run a program compiled with `stillpoint cc --lint`, and report stores outside a FASE and pointers out of "
                     "durable memory, or misused restart points: stillpoint lint [OPTIONS] -- PROGRAM [ARGUMENTS...]");
    const auto plan = std::make_shared<LintPlan>();
    line.json_flag(plan->as_json, "The report as one JSON object.");
    line.option(
        "--output", "PATH",
        [plan](const std::string& text) {
            plan->output = text;
            return std::string(text.empty() ? "the path is empty" : "");
        },
        "Write the report to this file instead of standard error.");
    line.option(
        "--suppress", "PATH",
        [plan](const std::string& text) {
            plan->suppressions = text;
            return std::string(text.empty() ? "the path is empty" : "");
        },
        "Leave out the findings that this file names.");
    add_runtime_flags(line, plan->runtime, [](const OptionRow&) { return true; });
    line.ends_with_a_command();
    line.footer(lint_examples, lint_exit_codes);
    line.on_use([line, plan, &invocation] {
        plan->runtime->settle(invocation.quiet);
        const auto quiet = plan->runtime->environment.contains("STILLPOINT_QUIET");
        answer_goes_to([&output = plan->output](const std::string& text) {
            if (output.empty()) {
                print_error("{}", text);
            } else {
                (void)write_to(output, text);  // The error has been told on standard error.
            }
        });
        return lint_program(*plan, line.command(), quiet);
    });
}

}  // namespace stillpoint::tool

#include "bench.hpp"

#include <cerrno>
#include <cstring>
#include <string_view>
#include <unistd.h>

#include "command.hpp"
#include "installation.hpp"

namespace stillpoint::tool {

std::optional<std::vector<std::string>> bench_call(int argc, char** argv)
{
    bool is_quiet = false;
    for (int index = 1; index < argc; ++index) {
        const std::string_view word = argv[index];
        if (word == "bench") {
            std::vector<std::string> words(argv + index + 1, argv + argc);
            if (is_quiet) {
                words.emplace_back("--quiet");
            }
            return words;
        }
        if (word != "-q" && word != "--quiet") {
            break;
        }
        is_quiet = true;
    }
    return std::nullopt;
}

int run_bench(const std::vector<std::string>& words)
{
    const std::string driver = bench_folder();
    const std::string workers = bench_workers_folder();
    if (driver.empty() || workers.empty()) {
        return report_error(exit_codes::unavailable,
                            "this installation has no benchmark: its programs lie in lib/stillpoint; build and install Stillpoint again");
    }
    std::vector<std::string> command = {"python3", "-B",        driver + "/run.py",          "--binaries",
                                        workers,   "--command", own_folder() + "/stillpoint"};
    command.insert(command.end(), words.begin(), words.end());
    std::vector<char*> arguments;
    for (std::string& word : command) {
        arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    execvp("python3", arguments.data());
    return report_error(exit_codes::unavailable, text_of("python3 cannot be started ({}): apt-get install python3", std::strerror(errno)));
}

void add_bench(CLI::App& app, Invocation& invocation)
{
    CommandLine line(app, invocation, "bench", "Measure engines and peers on the same work, in one run. Its own help: bench --help.");
    line.ends_with_a_command();
    line.on_use([line] { return run_bench(line.command()); });
}

}  // namespace stillpoint::tool

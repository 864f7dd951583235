// Counts the instructions that a program's main thread executes between two SIGURG signals that it raises itself: the
// thread is single-stepped (ptrace), so the count is exact, on any kernel, with any medium and tracker. Other threads run on.
//
// Usage: step_counter FILE PROGRAM [ARGUMENT ...]
// FILE gets one line for each pair of signals. The program's exit code is passed on; 77: this system does not allow ptrace.

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

namespace {

constexpr int skipped = 77;
constexpr std::uint64_t steps_max = 200'000'000;

[[noreturn]] void become(char** words)
{
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) {
        std::fprintf(stderr, "step_counter: ptrace is not allowed here: %s\n", std::strerror(errno));
        std::_Exit(skipped);
    }
    execvp(words[0], words);
    std::fprintf(stderr, "step_counter: %s: %s\n", words[0], std::strerror(errno));
    std::_Exit(EX_NOINPUT);
}

/// Lets the program go on until it stops or ends. False: it has ended; `status` is its last.
bool go_on(pid_t program, bool steps, int signal, int& status)
{
    const auto request = steps ? PTRACE_SINGLESTEP : PTRACE_CONT;
    if (ptrace(request, program, nullptr, static_cast<long>(signal)) != 0) {
        std::fprintf(stderr, "step_counter: ptrace: %s\n", std::strerror(errno));
        std::exit(EX_OSERR);
    }
    while (waitpid(program, &status, 0) != program) {
    }
    return WIFSTOPPED(status);
}

}  // namespace

int main(int count, char** words)
{
    if (count < 3) {
        std::fputs("Usage: step_counter FILE PROGRAM [ARGUMENT ...]\n", stderr);
        return EX_USAGE;
    }
    std::FILE* const file = std::fopen(words[1], "w");
    if (file == nullptr) {
        std::fprintf(stderr, "step_counter: %s: %s\n", words[1], std::strerror(errno));
        return EX_CANTCREAT;
    }
    const pid_t program = fork();
    if (program == 0) {
        become(words + 2);
    }
    bool is_counting = false;
    std::uint64_t steps = 0;
    int status = 0;
    while (waitpid(program, &status, 0) != program) {
    }
    while (WIFSTOPPED(status)) {
        int deliver = WSTOPSIG(status);
        if (deliver == SIGURG) {
            deliver = 0;
            if (is_counting) {
                std::fprintf(file, "%llu\n", static_cast<unsigned long long>(steps));
            }
            is_counting = !is_counting;
            steps = 0;
        } else if (deliver == SIGTRAP) {  // a step, or the exec of the program
            deliver = 0;
            steps += is_counting ? 1 : 0;
        }
        if (steps > steps_max) {
            std::fputs("step_counter: too many steps: is a second SIGURG missing?\n", stderr);
            kill(program, SIGKILL);
            return EX_SOFTWARE;
        }
        if (!go_on(program, is_counting, deliver, status)) {
            break;
        }
    }
    std::fclose(file);
    return WIFEXITED(status) ? WEXITSTATUS(status) : EX_SOFTWARE;
}

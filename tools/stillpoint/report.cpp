#include "report.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

#include "api/session.hpp"
#include "error_words.hpp"
#include "exit_codes.hpp"
#include "output.hpp"

namespace stillpoint::tool {

namespace {

struct Answer {
    bool is_json = false;
    std::string object;  ///< the result, without its last brace; empty: none
    std::string error;   ///< the first error's object
    std::function<void(const std::string& line)> write;
};

Answer& the_answer()
{
    static Answer answer;
    return answer;
}

/// The line of JSON after the result.
std::string end_of_line(const Answer& answer)
{
    std::string end = answer.object.empty() ? "{" : "";
    if (!answer.error.empty()) {
        end += (answer.object.empty() ? "" : ", ") + std::string("\"error\": ") + answer.error;
    }
    return end + "}\n";
}

}  // namespace

int report_error(int exit_code, std::string_view text, const ErrorWords& words)
{
    print_error("stillpoint: error: {}\n", text);
    Answer& answer = the_answer();
    if (answer.is_json && answer.error.empty()) {
        Json json;
        json.begin_object()
            .text("code", words.code.empty() ? code_word_for(exit_code) : words.code)
            .number("exit_code", exit_code)
            .text("message", text)
            .text("next", words.next.empty() ? next_step_for(exit_code) : words.next)
            .end_object();
        answer.error = json.str();
    }
    return exit_code;
}

int report_failure(const Failure& failure)
{
    return report_error(exit_code_for(failure.code), printable(failure.text()), {.code = code_word_for(failure.code)});
}

void answer_in_json() { the_answer().is_json = true; }

void answer(Json open_object) { the_answer().object = std::move(open_object).str(); }

void answer_goes_to(std::function<void(const std::string& line)> write) { the_answer().write = std::move(write); }

int end_of_output(int exit_code)
{
    const Answer& answer = the_answer();
    if (answer.is_json && (!answer.object.empty() || !answer.error.empty())) {
        const std::string end = end_of_line(answer);
        if (answer.write) {
            answer.write(answer.object + end);
        } else {  // A dump can be large: it is not copied.
            std::fputs(answer.object.c_str(), stdout);
            std::fputs(end.c_str(), stdout);
        }
    }
    errno = 0;
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) {
        return exit_code;
    }
    report_error(exit_codes::input_output, text_of("standard output cannot be written ({}): what was printed is not complete",
                                                   errno == 0 ? "an earlier write failed" : std::strerror(errno)));
    // A finding that could not be printed is none.
    return exit_code == exit_codes::ok || exit_code == exit_codes::found ? exit_codes::input_output : exit_code;
}

bool output_is_broken() { return std::fflush(stdout) != 0 || std::ferror(stdout) != 0; }

void occupy_standard_descriptors()
{
    for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor) {
        if (fcntl(descriptor, F_GETFD) == -1 && errno == EBADF) {
            // The lowest free number is this one. Reading what is for writing fails, and the other way round, as before.
            (void)open("/dev/null", (descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
        }
    }
}

}  // namespace stillpoint::tool

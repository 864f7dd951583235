#include "answer.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include "ending.hpp"

namespace bench {

namespace {

std::FILE* answers = stdout;

std::string quoted(std::string_view text)
{
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            char code[8];
            std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
            out += code;
        } else {
            out += c;
        }
    }
    return out + "\"";
}

}  // namespace

void Answer::name(std::string_view name) { fields_ += (fields_.empty() ? "" : ", ") + quoted(name) + ": "; }

Answer& Answer::number(std::string_view field, std::uint64_t value)
{
    name(field);
    fields_ += std::to_string(value);
    return *this;
}

Answer& Answer::text(std::string_view field, std::string_view value)
{
    name(field);
    fields_ += quoted(value);
    return *this;
}

Answer& Answer::boolean(std::string_view field, bool value)
{
    name(field);
    fields_ += value ? "true" : "false";
    return *this;
}

Answer& Answer::raw(std::string_view field, std::string_view json)
{
    name(field);
    fields_ += json;
    return *this;
}

void Answer::send() const
{
    std::fprintf(answers, "%s\n", json().c_str());
    std::fflush(answers);
}

void Answer::keep_apart()
{
    answers = fdopen(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3), "w");
    if (answers == nullptr || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        give_up(std::string("standard output cannot be kept apart: ") + std::strerror(errno));
    }
}

}  // namespace bench

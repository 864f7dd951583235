#include "commands.hpp"

#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <sstream>
#include <string_view>
#include <sys/prctl.h>
#include <utility>

#include "clock.hpp"
#include "ending.hpp"

namespace bench {

namespace {

bool parse(const std::string& text, std::uint64_t& out)
{
    const char* const end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, out);
    return parsed.ec == std::errc() && parsed.ptr == end;
}

}  // namespace

Settings::Settings(int count, char** words)
{
    for (int i = 1; i < count; ++i) {
        const char* const equals = std::strchr(words[i], '=');
        if (equals == nullptr) {
            give_up(std::string(words[i]) + " is not understood: settings are written name=value");
        }
        values_[std::string(words[i], static_cast<std::size_t>(equals - words[i]))] = equals + 1;
    }
}

std::uint64_t Settings::number(const std::string& name, std::uint64_t usual) const
{
    const auto found = values_.find(name);
    std::uint64_t value = usual;
    if (found != values_.end() && !parse(found->second, value)) {
        give_up(name + "=" + found->second + ": a whole number is needed");
    }
    return value;
}

std::uint64_t Settings::number_from(const std::string& name, std::uint64_t minimum, std::uint64_t maximum) const
{
    const std::uint64_t value = number(name, maximum);
    if (values_.count(name) == 0 || value < minimum || value > maximum) {
        give_up("write " + name + "=N, from " + std::to_string(minimum) + " to " + std::to_string(maximum));
    }
    return value;
}

double Settings::decimal(const std::string& name, double usual, double minimum, double maximum) const
{
    const std::string written = text(name);
    char* end = nullptr;
    const double value = written.empty() ? usual : std::strtod(written.c_str(), &end);
    if ((end != nullptr && *end != '\0') || !(value >= minimum && value <= maximum)) {
        give_up(name + "=" + written + ": a number from " + std::to_string(minimum) + " to " + std::to_string(maximum) + " is needed");
    }
    return value;
}

std::string Settings::text(const std::string& name, const std::string& usual) const
{
    const auto found = values_.find(name);
    return found != values_.end() ? found->second : usual;
}

void Commands::add(const std::string& name, std::size_t numbers, Handler handler) { commands_[name] = {numbers, std::move(handler)}; }

void Commands::obey(const std::string& line)
{
    std::istringstream words(line);
    std::string name;
    words >> name;
    Numbers numbers;
    for (std::uint64_t number = 0; words >> number;) {
        numbers.push_back(number);
    }
    const auto found = commands_.find(name);
    if (found == commands_.end() || found->second.numbers != numbers.size()) {
        give_up("the command \"" + line + "\" is not understood");
    }
    Answer answer;
    found->second.handler(numbers, answer);
    answer.send();
}

void Commands::serve(const Answer& ready)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    ready.send();
    char line[256];
    while (std::fgets(line, sizeof line, stdin) != nullptr) {
        obey(std::string(line, std::strcspn(line, "\n")));
    }
}

Stopwatch::Stopwatch() : wall_ns_(monotonic_ns()), cpu_ns_(process_cpu_ns()) {}

void Stopwatch::lap()
{
    lap_wall_ns_ = monotonic_ns();
    lap_cpu_ns_ = process_cpu_ns();
}

void Stopwatch::add_to(Answer& answer, std::uint64_t operations) const { add_to(answer, operations, lap_wall_ns_ - wall_ns_); }

void Stopwatch::add_to(Answer& answer, std::uint64_t operations, std::uint64_t wall_ns) const
{
    answer.number("operations", operations).number("wall_ns", wall_ns).number("cpu_ns", lap_cpu_ns_ - cpu_ns_);
    answer.number("settle_wall_ns", monotonic_ns() - lap_wall_ns_).number("settle_cpu_ns", process_cpu_ns() - lap_cpu_ns_);
}

int worker_main(int count, char** words, void (*run)(const Settings& settings))
{
    try {
        run(Settings(count, words));
    } catch (const std::exception& failure) {
        give_up(failure.what());
    }
    return 0;
}

}  // namespace bench

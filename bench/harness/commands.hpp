#pragma once
// A measured process: settings on its command line as name=value words, then commands on standard input, a line each: a name and
// whole numbers. Each answer is a JSON object on a line; the first one comes before any command. The driver is
// bench/driver/process.py. C++17, for programs of other people.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "answer.hpp"

namespace bench {

class Settings {
public:
    /// Ends the program where a word is not name=value.
    Settings(int count, char** words);

    [[nodiscard]] bool has(const std::string& name) const { return values_.count(name) != 0; }
    /// Ends the program where the value is not a number.
    [[nodiscard]] std::uint64_t number(const std::string& name, std::uint64_t usual) const;
    /// Ends the program where the value is missing, or out of bounds.
    [[nodiscard]] std::uint64_t number_from(const std::string& name, std::uint64_t minimum, std::uint64_t maximum) const;
    /// Ends the program where the value is not a number, or out of bounds.
    [[nodiscard]] double decimal(const std::string& name, double usual, double minimum, double maximum) const;
    [[nodiscard]] std::string text(const std::string& name, const std::string& usual = {}) const;

private:
    std::map<std::string, std::string> values_;
};

/// The work of a process when it is told to start.
class Commands {
public:
    using Numbers = std::vector<std::uint64_t>;
    using Handler = std::function<void(const Numbers& numbers, Answer& answer)>;

    /// `numbers`: how many the command takes.
    void add(const std::string& name, std::size_t numbers, Handler handler);
    /// Sends `ready`, then obeys until the end of input. No process outlives its driver.
    void serve(const Answer& ready);

private:
    struct Command {
        std::size_t numbers;
        Handler handler;
    };

    void obey(const std::string& line);

    std::map<std::string, Command> commands_;
};

/// Wall and CPU time of a stretch of work, and of what had to be made durable after it. CPU time is that of the whole process, so a
/// checkpoint thread's counts too.
class Stopwatch {
public:
    Stopwatch();
    /// The work is done; what follows until add_to() is the settling.
    void lap();
    void add_to(Answer& answer, std::uint64_t operations) const;
    /// `wall_ns` was taken elsewhere.
    void add_to(Answer& answer, std::uint64_t operations, std::uint64_t wall_ns) const;

private:
    std::uint64_t wall_ns_;
    std::uint64_t cpu_ns_;
    std::uint64_t lap_wall_ns_ = 0;
    std::uint64_t lap_cpu_ns_ = 0;
};

/// main() of a measured process: what `run` throws ends it with a line on standard error.
int worker_main(int count, char** words, void (*run)(const Settings& settings));

}  // namespace bench

#pragma once
// An answer to the driver: one JSON object on one line of standard output.

#include <cstdint>
#include <string>
#include <string_view>

namespace bench {

class Answer {
public:
    Answer& number(std::string_view name, std::uint64_t value);
    Answer& text(std::string_view name, std::string_view value);
    Answer& boolean(std::string_view name, bool value);
    /// `json` is written as it is.
    Answer& raw(std::string_view name, std::string_view json);
    [[nodiscard]] std::string json() const { return "{" + fields_ + "}"; }
    /// Writes and flushes the line.
    void send() const;
    /// From now on answers alone go to standard output: what the rest of the process writes there goes to standard error. For processes
    /// with code that was written elsewhere; before any answer.
    static void keep_apart();

private:
    void name(std::string_view name);

    std::string fields_;
};

}  // namespace bench

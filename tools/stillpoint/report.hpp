#pragma once
// How the command tells what it found, and that it failed: in words, and with --json as one object (docs/guide/json.md).

#include <functional>
#include <string>
#include <string_view>

#include "core/result.hpp"
#include "json.hpp"

namespace stillpoint::tool {

/// The error as scripts read it, besides its text; empty: what the exit code has (error_words.hpp).
struct ErrorWords {
    std::string_view code = {};
    std::string_view next = {};  ///< what to do, or a command that tells more
};

/// Prints "stillpoint: error: text" on standard error and returns `exit_code`. In JSON the first error counts.
int report_error(int exit_code, std::string_view text, const ErrorWords& words = {});
/// Reports a failure of the library.
int report_failure(const Failure& failure);

/// From now on errors are told in JSON too.
void answer_in_json();
/// Takes the result: an object that is still open. end_of_output() prints it, with the member "error" if one was reported.
void answer(Json open_object);
/// Gives the line of JSON to `write` instead of standard output.
void answer_goes_to(std::function<void(const std::string& line)> write);
/// Prints the JSON and flushes standard output. Returns `exit_code`, or 74 if all went well but the output could not be written.
[[nodiscard]] int end_of_output(int exit_code);

/// Whether standard output has failed: for commands that print again and again.
[[nodiscard]] bool output_is_broken();

/// Occupies the standard descriptors that are closed, so that no pool is opened as one of them and written to by a message.
/// They are closed again in a program that the command becomes.
void occupy_standard_descriptors();

}  // namespace stillpoint::tool

#pragma once
// Findings that the user knows of, named in a file.

#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "lint_findings.hpp"
#include "program.hpp"

namespace stillpoint::tool {

/// One line of the file: function:PATTERN, file:PATTERN or module:PATTERN, '*' standing for anything, where a pattern fits
/// that is a part of the name; or block:SIZE+OFFSET, for what is found in memory.
struct Suppression {
    enum class Of { function, file, module, block } of;
    std::string pattern;
};

/// Empty lines and lines that begin with '#' are skipped. Refuses a line of another form, with its number.
[[nodiscard]] tl::expected<std::vector<Suppression>, Refusal> read_suppressions(const std::string& path);

/// Takes out what a suppression fits, in any frame of the stack, and counts it.
void suppress(LintFindings& findings, const std::vector<Suppression>& suppressions);

}  // namespace stillpoint::tool

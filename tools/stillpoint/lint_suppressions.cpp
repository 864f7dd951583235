#include "lint_suppressions.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fnmatch.h>
#include <fstream>
#include <string_view>

#include "exit_codes.hpp"
#include "output.hpp"

namespace stillpoint::tool {

namespace {

bool fits(const Suppression& suppression, const LintFrame& frame)
{
    if (suppression.of == Suppression::Of::block) {
        return false;
    }
    const std::string& name = suppression.of == Suppression::Of::function ? frame.function
                              : suppression.of == Suppression::Of::file   ? frame.file
                                                                          : frame.module;
    return fnmatch(("*" + suppression.pattern + "*").c_str(), name.c_str(), FNM_NOESCAPE) == 0;
}

bool parse(std::string_view line, Suppression& suppression)
{
    const std::size_t colon = line.find(':');
    const std::string_view of = line.substr(0, colon);
    suppression.of = of == "function" ? Suppression::Of::function
                     : of == "file"   ? Suppression::Of::file
                     : of == "module" ? Suppression::Of::module
                                      : Suppression::Of::block;
    suppression.pattern = colon == std::string_view::npos ? "" : line.substr(colon + 1);
    return !suppression.pattern.empty() && (of == "function" || of == "file" || of == "module" || of == "block");
}

}  // namespace

tl::expected<std::vector<Suppression>, Refusal> read_suppressions(const std::string& path)
{
    errno = 0;
    std::ifstream file(path);
    std::vector<Suppression> suppressions;
    std::string line;
    int number = 0;
    while (std::getline(file, line)) {
        ++number;
        line.erase(line.find_last_not_of(" \t\r") + 1);
        line.erase(0, line.find_first_not_of(" \t"));
        if (line.empty() || line.front() == '#') {
            continue;
        }
        Suppression suppression{};
        if (!parse(line, suppression)) {
            return tl::unexpected(
                Refusal{exit_codes::data_error, text_of("{}:{}: '{}' is not a suppression; write function:PATTERN, file:PATTERN, "
                                                        "module:PATTERN or block:SIZE+OFFSET, one a line",
                                                        path, number, line)});
        }
        suppressions.push_back(std::move(suppression));
    }
    if (!file.eof()) {
        return tl::unexpected(Refusal{exit_codes::no_input,
                                      text_of("cannot read the suppressions in {}: {}", path, std::strerror(errno != 0 ? errno : EIO))});
    }
    return suppressions;
}

void suppress(LintFindings& findings, const std::vector<Suppression>& suppressions)
{
    const auto names_block = [](const Suppression& one, const LintFinding& finding) {
        return one.of == Suppression::Of::block && one.pattern == text_of("{}+{}", finding.size_bytes, finding.block_offset);
    };
    const auto is_suppressed = [&](const LintFinding& finding) {
        if (finding.stack.empty()) {
            return std::any_of(suppressions.begin(), suppressions.end(), [&](const Suppression& one) { return names_block(one, finding); });
        }
        return std::any_of(finding.stack.begin(), finding.stack.end(), [&](const LintFrame& frame) {
            return std::any_of(suppressions.begin(), suppressions.end(), [&](const Suppression& one) { return fits(one, frame); });
        });
    };
    findings.suppressed += std::erase_if(findings.list, is_suppressed);
}

}  // namespace stillpoint::tool

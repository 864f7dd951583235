#pragma once
// The findings of `stillpoint lint`, as people read them.

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/lint_rules.hpp"

namespace stillpoint::tool {

/// One function of a call stack. Inlined ones have a frame of their own.
struct LintFrame {
    std::string function;  ///< empty: unknown
    std::string file;      ///< empty: the module has no line information
    int line = 0;
    std::string module;    ///< path; empty: code in no loaded file
    std::uint64_t offset = 0;  ///< in the module, of the instruction after the call
};

struct LintFinding {
    lint::Kind kind;
    const lint::KindWords* words;
    std::uint64_t count = 0;
    // About the first time:
    std::uint64_t address = 0;
    std::uint64_t size_bytes = 0;  ///< of the block, with Kind::found_pointer
    std::uint64_t block_offset = 0;
    std::uint64_t value = 0;  ///< of the pointer
    std::string target;       ///< "to the heap (malloc)": what it points to; empty for others
    std::string detail;       ///< what KindWords::detail says
    std::vector<LintFrame> stack;  ///< innermost first; empty with Kind::found_pointer only
};

struct LintFindings {
    std::vector<LintFinding> list;  ///< in the order of their kinds; the most frequent first
    std::uint64_t lost = 0;         ///< findings that the report had no room for
    std::uint64_t suppressed = 0;   ///< places taken out by suppress()
};

/// Reads a report, with names and lines where llvm-symbolizer or addr2line can tell them. Places that are the same line of
/// the same function are one.
[[nodiscard]] LintFindings read_findings(const lint::Report& report);

/// For a person.
[[nodiscard]] std::string text_of_findings(const LintFindings& findings);
/// Where it is: the innermost frame, or which word of which blocks.
[[nodiscard]] std::string text_of_place(const LintFinding& finding);
/// "file.c:12 in function", seen from the current folder; or "module+0x1234".
[[nodiscard]] std::string text_of_frame(const LintFrame& frame);
/// For scripts: one JSON object. `exit_code` and `signal` are the program's.
[[nodiscard]] std::string json_of_findings(const LintFindings& findings, int exit_code, int signal);

}  // namespace stillpoint::tool

#pragma once
// The words for each kind of finding of `stillpoint lint`.

#include <string_view>

#include "nvhooks/runtime/lint_report.hpp"

namespace stillpoint::tool {

struct LintKindWords {
    lint::Kind kind;
    std::string_view headline;
    std::string_view in_json;
    std::string_view remedy;  ///< what to do; empty: the headline says it
};

[[nodiscard]] const LintKindWords& words_for(lint::Kind kind);

}  // namespace stillpoint::tool

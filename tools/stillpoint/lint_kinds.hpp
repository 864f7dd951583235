#pragma once
// The words for each kind of finding of `stillpoint lint`.

#include <string_view>

#include "runtime/lint_rules.hpp"

namespace stillpoint::tool {

/// `rules`: of the engine that the program was checked for; nullptr: those of FASEs.
[[nodiscard]] const lint::KindWords& words_for(lint::Kind kind, const lint::EngineRules* rules);

}  // namespace stillpoint::tool

#include "lint_kinds.hpp"

#include <array>

namespace stillpoint::tool {

namespace {

using lint::Kind;

constexpr std::array kinds{
    lint::KindWords{"durable store outside a FASE", "store-outside-fase", ""},
    lint::KindWords{"pointer out of durable memory", "pointer-out", ""},
    lint::KindWords{"possible pointer out of durable memory", "possible-pointer-out", ""},
    lint::KindWords{"possible pointer, stored without a hook", "possible-pointer-found", ""},
};
constexpr auto first_kind = static_cast<std::uint32_t>(Kind::store);
constexpr auto first_of_engine = static_cast<std::uint32_t>(Kind::first_of_engine);
static_assert(first_kind + kinds.size() == first_of_engine);

}  // namespace

const lint::KindWords& words_for(Kind kind, const lint::EngineRules* rules)
{
    const auto number = static_cast<std::uint32_t>(kind);
    if (rules != nullptr && number >= first_of_engine && number - first_of_engine < rules->kinds.size()) {
        return rules->kinds[number - first_of_engine];
    }
    return number >= first_kind && number < first_of_engine ? kinds[number - first_kind] : kinds.front();
}

}  // namespace stillpoint::tool

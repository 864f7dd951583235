#pragma once
// The words for what a check finds: for each part of a pool what damage there costs and what it does not, and which commands help.

#include <string>
#include <string_view>
#include <vector>

#include "pool_access.hpp"

namespace stillpoint::tool {

struct PartWords {
    std::string_view word;  ///< "pages"
    std::string_view lost;  ///< a clause: what damage in that part costs
    std::string_view kept;  ///< a clause: what it does not
};
[[nodiscard]] const PartWords& words_of(PoolPart part) noexcept;

struct Help {
    std::string command;
    std::string what;  ///< a clause: what it does
};

/// The commands that help with that damage, the best first. `driver`: nullptr where the engine is not known.
[[nodiscard]] std::vector<Help> helps_for(const std::string& path, const EngineDriver* driver, const Verification& verified);

}  // namespace stillpoint::tool

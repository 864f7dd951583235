#pragma once
// How many cases a test takes of those that it could: damages, seeds, moments of a crash. The release takes all that its tests name.
// Under AddressSanitizer each case takes several times as long and shows the sanitizer the code of the others: there a test takes a
// part of them, of each kind some, unless STILLPOINT_CASES is "all" (`make test-all`). STILLPOINT_CASES=few takes the part everywhere.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/sanitizers.hpp"

namespace stillpoint::test {

/// Whether this run takes a part of the cases.
inline bool takes_few_cases()
{
    const char* const wish = std::getenv("STILLPOINT_CASES");
    return wish != nullptr ? std::string_view(wish) == "few" : STILLPOINT_ADDRESS_SANITIZER != 0;
}

/// How many cases a test takes that has `all` of them; a part of them is one of `part`.
inline std::uint64_t cases(std::uint64_t all, std::uint64_t part)
{
    return takes_few_cases() ? std::max<std::uint64_t>(all / part, 1) : all;
}

/// From one case to the next, where the step to the next of all is `step`.
inline std::uint64_t case_step(std::uint64_t step, std::uint64_t few_step) { return takes_few_cases() ? few_step : step; }

}  // namespace stillpoint::test

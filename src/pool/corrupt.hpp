#pragma once
// The error of a pool whose tables do not hold together.

#include <utility>

#include "core/result.hpp"

namespace stillpoint {

/// SP_E_POOL_CORRUPT with that text.
template <class... Args>
[[nodiscard]] auto corrupt(fmt::format_string<Args...> format, Args&&... args)
{
    return fail(SP_E_POOL_CORRUPT, 0, format, std::forward<Args>(args)...);
}

}  // namespace stillpoint

#pragma once
// Short texts for messages, cut where they are too long.

#include <string>
#include <utility>

#include "core/result.hpp"

namespace stillpoint {

template <class... Args>
[[nodiscard]] std::string formatted(fmt::format_string<Args...> format, Args&&... args)
{
    char text[512];
    const auto end = fmt::format_to_n(text, sizeof text, format, std::forward<Args>(args)...);
    return {text, end.out};
}

}  // namespace stillpoint

#pragma once
// How far one word is from another, for "did you mean".

#include <cstddef>
#include <string_view>

namespace stillpoint {

/// Letters to insert, take out or replace (Levenshtein). Words are compared in their first 48 letters; allocates nothing.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b) noexcept;

}  // namespace stillpoint

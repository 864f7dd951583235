#include "core/edit_distance.hpp"

#include <algorithm>
#include <array>

namespace stillpoint {

std::size_t edit_distance(std::string_view a, std::string_view b) noexcept
{
    constexpr std::size_t length_max = 48;
    a = a.substr(0, length_max);
    b = b.substr(0, length_max);
    std::array<std::size_t, length_max + 1> row{};
    for (std::size_t j = 0; j <= b.size(); ++j) {
        row[j] = j;
    }
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0u : 1u);
            diagonal = row[j];
            row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
        }
    }
    return row[b.size()];
}

}  // namespace stillpoint

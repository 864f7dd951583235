#pragma once
// Which variable of the program is which variable of the pool: by name, with the source file and the module deciding
// where a name is there twice. Knows nothing of bytes.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace stillpoint::durable_globals {

template <class... Args>
[[nodiscard]] std::string text_of(fmt::format_string<Args...> format, Args&&... args)
{
    std::string text;
    fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
    return text;
}

struct Variable {
    std::string name;    ///< with its namespaces; empty: unnamed bytes of a stripped program
    std::string scope;   ///< source file; empty: not known
    std::string type;    ///< empty: not known
    std::string module;
    std::uint64_t size = 0;

    /// The name without namespaces.
    [[nodiscard]] std::string_view base() const noexcept;
};

inline constexpr std::size_t nothing = static_cast<std::size_t>(-1);

struct Matching {
    std::vector<std::size_t> of_present;  ///< for each present variable: the index of the kept one, or `nothing`
    std::vector<bool> kept_is_taken;      ///< for each kept one: it is matched, or refused together with a present one
    std::vector<std::string> refused;     ///< a sentence for each pair or name that cannot be matched
};

/// Matches what the program has now with what the pool keeps. A name is matched where only one pair can be meant.
/// Of what is refused, no variable is matched.
[[nodiscard]] Matching match(const std::vector<Variable>& present, const std::vector<Variable>& kept);

}  // namespace stillpoint::durable_globals

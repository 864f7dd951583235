#pragma once
// Mutants of the protocol: the product's code with one ordering, wake-up, store or look weakened.

#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/schedules/operation.hpp"

namespace stillpoint::schedules {

/// A place in the product's code and what it does there.
struct Site {
    std::string file;  ///< from src/ on
    unsigned line = 0;
    unsigned column = 0;
    Kind kind = Kind::load;
    std::memory_order order = std::memory_order_relaxed;
    [[nodiscard]] auto key() const { return std::tie(file, line, column); }
    bool operator<(const Site& other) const { return key() < other.key(); }
};
using SiteSet = std::set<Site>;

struct Mutant {
    enum class Change : std::uint8_t {
        dropped,      ///< a fence, barrier, store or wake-up is left out
        not_acquire,  ///< the order loses its acquire half
        not_release,
        blind,        ///< a load finds zero
    };
    Site site;
    Change change;
};

[[nodiscard]] std::vector<Mutant> mutants_of(const SiteSet& sites);
[[nodiscard]] std::string describe(const Mutant& mutant);
[[nodiscard]] const char* name_of(Kind kind) noexcept;
[[nodiscard]] const char* name_of(std::memory_order order) noexcept;
/// The part of a path from src/ or tests/ on.
[[nodiscard]] std::string short_path(const char* path);

}  // namespace stillpoint::schedules

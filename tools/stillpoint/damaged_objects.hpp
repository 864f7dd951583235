#pragma once
// Damaged objects of a pool, which are told beside those that can be shown.

#include <cstddef>
#include <vector>

#include "core/findings.hpp"

namespace stillpoint::tool {

/// Keeps as many as a person reads.
class DamagedObjects final : public Findings {
public:
    std::vector<Failure> kept;

private:
    void tell(const Failure& failure, bool is_damage) override
    {
        constexpr std::size_t kept_max = 100;
        if (is_damage && kept.size() < kept_max) {
            kept.push_back(failure);
        }
    }
};

}  // namespace stillpoint::tool

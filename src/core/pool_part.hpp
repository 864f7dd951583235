#pragma once
// The part of a pool that a check looks at: where damage lies decides what is lost by it.

#include <cstddef>
#include <cstdint>

#include "core/findings.hpp"

namespace stillpoint {

enum class PoolPart : std::uint8_t {
    superblocks,
    commit_records,
    tables,        ///< of the engine: which copy of a page is in force, or the records of its own copies
    pages,         ///< of the program's memory, and lines that lie over them
    logs,          ///< of threads, operations or transactions
    image_header,
    handles,
    heap,
    locks,
    types,
    globals,
    objects,       ///< whose layout the engine knows
};
inline constexpr std::size_t pool_parts = 12;

/// Findings that are sorted by the part that the check looks at when they are told.
class FindingsByPart : public Findings {
public:
    void look_at(PoolPart part) noexcept override
    {
        part_ = part;
        looked_at_ |= bit_of(part);
    }
    [[nodiscard]] PoolPart part() const noexcept { return part_; }
    [[nodiscard]] bool has_looked_at(PoolPart part) const noexcept { return (looked_at_ & bit_of(part)) != 0; }

private:
    [[nodiscard]] static constexpr std::uint32_t bit_of(PoolPart part) noexcept { return 1U << static_cast<unsigned>(part); }

    PoolPart part_ = PoolPart::superblocks;
    std::uint32_t looked_at_ = bit_of(PoolPart::superblocks);
};

/// For checks whose findings may be none.
inline void look_at(Findings* findings, PoolPart part) noexcept
{
    if (findings != nullptr) {
        findings->look_at(part);
    }
}

}  // namespace stillpoint

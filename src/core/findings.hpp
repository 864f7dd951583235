#pragma once
// The findings of a check, which continues after each finding where it can, so that one look shows all damage.

#include <cstdint>
#include <optional>

#include "core/result.hpp"

namespace stillpoint {

enum class PoolPart : std::uint8_t;  // core/pool_part.hpp

class Findings {
public:
    /// The contents of the pool are wrong.
    void damage(const Failure& failure)
    {
        ++damages_;
        tell(failure, true);
    }
    /// Something is damaged of which there is a second one, which serves.
    void remark(const Failure& failure) { tell(failure, false); }
    [[nodiscard]] std::uint64_t damages() const noexcept { return damages_; }

    /// From here on the check looks at that part of the pool.
    virtual void look_at(PoolPart) noexcept {}

    virtual ~Findings() = default;

protected:
    virtual void tell(const Failure& failure, bool is_damage) = 0;

private:
    std::uint64_t damages_ = 0;
};

/// Keeps the first damage, for a caller that asks for no more.
class FirstFinding final : public Findings {
public:
    std::optional<Failure> first;

private:
    void tell(const Failure& failure, bool is_damage) override
    {
        if (is_damage && !first) {
            first = failure;
        }
    }
};

/// The rule of every check: without a collector of findings the first one ends it.
[[nodiscard]] inline Result<void> found(Findings* findings, const tl::unexpected<Failure>& failure)
{
    if (findings == nullptr || failure.value().code != SP_E_POOL_CORRUPT) {
        return failure;
    }
    findings->damage(failure.value());
    return {};
}

}  // namespace stillpoint

#pragma once
// The findings of a check, which continues after each finding where it can, so that one look shows all damage.

#include <cstdint>

#include "core/result.hpp"

namespace stillpoint {

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

    virtual ~Findings() = default;

protected:
    virtual void tell(const Failure& failure, bool is_damage) = 0;

private:
    std::uint64_t damages_ = 0;
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

#pragma once
// A file system is full in the middle of an epoch: whether its writer tries again.

#include "core/result.hpp"

namespace stillpoint::versions {

/// Called without a lock when room was refused. Returns after a while, true: there may be room now. By default the epoch fails.
struct AwaitRoom {
    bool (*call)(void* context, const Failure& refusal) noexcept = nullptr;
    void* context = nullptr;

    /// Tries until it succeeds, fails with another error, or is not to be tried again.
    template <class Try>
    auto operator()(Try&& try_once) const
    {
        auto outcome = try_once();
        while (!outcome && outcome.error().code == SP_E_NO_SPACE && call != nullptr && call(context, outcome.error())) {
            outcome = try_once();
        }
        return outcome;
    }
};

}  // namespace stillpoint::versions

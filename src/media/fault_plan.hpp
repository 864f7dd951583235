#pragma once
// Fault injection for media: which calls fail, and how. Tests pass a plan in MediumOptions; the
// environment variable STILLPOINT_FAULT gives one to a whole program (docs/fault-injection.md).

#include <array>
#include <cstdint>
#include <string_view>

#include "core/result.hpp"

namespace stillpoint {

/// The calls that can be made to fail. Every path that does one of them asks the plan first:
/// io_uring and pwritev alike.
enum class FaultPoint : std::uint8_t { read, write, sync, allocate };

/// What the next call of a kind must do instead of its work.
struct Fault {
    int error = 0;           ///< errno to fail with; 0: do the call
    bool cut_short = false;  ///< do about half of it, as a short write does
    [[nodiscard]] explicit operator bool() const noexcept { return error != 0 || cut_short; }
};

/// Threads: next() may be called by any; counting is not exact while several do (only read() may
/// be called by several).
class FaultPlan {
public:
    FaultPlan() noexcept = default;

    /// Rules separated by commas, each `point:what@n`, or `point:what@n:always` for call n and
    /// every later one. point: read, write, sync, fallocate. what: an errno name (EIO, ENOSPC,
    /// EDQUOT, EINTR, EAGAIN, EROFS, EOPNOTSUPP) or `short` (read and write). n counts from 1.
    /// Errors: invalid_argument.
    [[nodiscard]] static Result<FaultPlan> parse(std::string_view text);

    /// parse() of STILLPOINT_FAULT; no rules where it is unset.
    [[nodiscard]] static Result<FaultPlan> from_environment();

    /// Counts one call of this kind and says what happens to it.
    [[nodiscard]] Fault next(FaultPoint point) noexcept;

private:
    struct Rule {
        FaultPoint point;
        bool always;
        std::uint64_t call;
        Fault fault;
    };
    static constexpr std::size_t rules_max = 8;
    static constexpr std::size_t points = 4;

    std::array<Rule, rules_max> rules_{};
    std::size_t rule_count_ = 0;
    std::array<std::uint64_t, points> calls_{};
};

}  // namespace stillpoint

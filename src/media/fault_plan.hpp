#pragma once
// Fault injection for media: which calls fail, and how. Tests pass a plan in MediumOptions; the
// environment variable STILLPOINT_FAULT gives one to a whole program (docs/internals/fault-injection.md).

#include <array>
#include <cstdint>
#include <string_view>

#include "core/result.hpp"

namespace stillpoint {

/// The calls that can be made to fail. Every path that does one of them asks the plan first:
/// io_uring and pwritev alike.
/// `persist` is every moment at which bytes may become durable or a promise may leave: before each
/// write, store, write back, fence, sync, allocation and naming, after each write that the kernel
/// reports done, and before a sync or fence returns to a caller that acknowledges.
enum class FaultPoint : std::uint8_t { read, write, sync, allocate, persist };

/// The effect of the fault plan on the next call of a kind.
struct Fault {
    int error = 0;           ///< errno to fail with; 0: do the call
    bool cut_short = false;  ///< do about half of it, as a short write does
    bool kill = false;       ///< the process ends by SIGKILL before the call: next() does not return
    [[nodiscard]] explicit operator bool() const noexcept { return error != 0 || cut_short; }
};

/// Threads: next() may be called by any; counting is not exact while several do (only read() may
/// be called by several).
class FaultPlan {
public:
    FaultPlan() noexcept = default;

    /// Rules separated by commas, each `point:what@n`, or `point:what@n:always` for call n and
    /// every later one. point: read, write, sync, fallocate, persist. what: an errno name (EIO,
    /// ENOSPC, EDQUOT, EINTR, EAGAIN, EROFS, EOPNOTSUPP), `short` (read and write) or `kill`, the
    /// only one that persist takes. n counts from 1.
    /// Errors: invalid_argument.
    [[nodiscard]] static Result<FaultPlan> parse(std::string_view text);

    /// parse() of STILLPOINT_FAULT; no rules where it is unset.
    [[nodiscard]] static Result<FaultPlan> from_environment();

    /// Counts one call of this kind and says what happens to it.
    [[nodiscard]] Fault next(FaultPoint point) noexcept;

    /// One persist point: counted also without rules. Threads: the medium's one writer.
    void persist() noexcept
    {
        auto& passed = calls_[static_cast<std::size_t>(FaultPoint::persist)];
        __atomic_store_n(&passed, __atomic_load_n(&passed, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
        if (rule_count_ != 0) [[unlikely]] {
            obey_rules(FaultPoint::persist, passed);
        }
    }
    [[nodiscard]] bool has_rules() const noexcept { return rule_count_ != 0; }
    /// How many there were since the pool was opened. Any thread.
    [[nodiscard]] std::uint64_t persist_points() const noexcept
    {
        return __atomic_load_n(&calls_[static_cast<std::size_t>(FaultPoint::persist)], __ATOMIC_RELAXED);
    }

private:
    struct Rule {
        FaultPoint point;
        bool always;
        std::uint64_t call;
        Fault fault;
    };
    static constexpr std::size_t rules_max = 8;
    static constexpr std::size_t points = 5;

    Fault obey_rules(FaultPoint point, std::uint64_t call) noexcept;

    std::array<Rule, rules_max> rules_{};
    std::size_t rule_count_ = 0;
    std::array<std::uint64_t, points> calls_{};
};

}  // namespace stillpoint

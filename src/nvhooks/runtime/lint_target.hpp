#pragma once
// The owner of an address of volatile memory, and where code was called from.

#include <cstdint>

#include "runtime/lint_report.hpp"

namespace stillpoint::lint {

struct TargetFacts {
    Target target = Target::none;
    ModuleAddress spot{0, no_module};
};

/// The place with this key, counted once more; `is_new`: the caller has to fill it, and set `ready`. nullptr: there is
/// no room left, which is counted too.
[[nodiscard]] Place* place_of(Report& report, std::uint64_t key, bool& is_new) noexcept;

/// `frame` is an address in the calling thread's stack. Reads /proc/self/maps: for addresses whose
/// place is not known yet.
[[nodiscard]] TargetFacts facts_of_target(std::uint64_t address, const void* frame, Report& report) noexcept;

/// The module that `address` lies in, entered into the report's table.
[[nodiscard]] ModuleAddress spot_of(std::uint64_t address, Report& report) noexcept;

/// The innermost return address of the calling thread that lies in the program, not in this library; or the one `outwards` beyond it.
[[nodiscard]] const void* program_caller(unsigned outwards) noexcept;

/// Return addresses of the calling thread from `caller` outwards. Returns how many.
[[nodiscard]] std::uint32_t call_stack(const void* caller, ModuleAddress* frames, std::uint32_t frames_size, Report& report) noexcept;

}  // namespace stillpoint::lint

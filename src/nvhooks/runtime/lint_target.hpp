#pragma once
// What an address of volatile memory belongs to, and where code was called from.

#include <cstdint>

#include "lint_report.hpp"

namespace stillpoint::lint {

struct TargetFacts {
    Target target = Target::none;
    Spot spot{0, no_module};
};

/// Whether a word may be the address of memory at all: neither a small number nor outside a program's address space.
[[nodiscard]] bool may_be_address(std::uint64_t word) noexcept;

/// `frame` is an address in the calling thread's stack. Reads /proc/self/maps: for addresses whose
/// place is not known yet.
[[nodiscard]] TargetFacts facts_of_target(std::uint64_t address, const void* frame, Report& report) noexcept;

/// The module that `address` lies in, entered into the report's table.
[[nodiscard]] Spot spot_of(std::uint64_t address, Report& report) noexcept;

/// Return addresses of the calling thread from `caller` outwards. Returns how many.
[[nodiscard]] std::uint32_t call_stack(const void* caller, Spot* frames, std::uint32_t frames_size, Report& report) noexcept;

}  // namespace stillpoint::lint

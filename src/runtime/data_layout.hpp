#pragma once
// The layout of the program's data: a name and a number of the program's own, which the pool keeps, so that a program never
// takes data of another kind for its own; and the steps that make newer data of older ones.
//
// Programs state them by records in a section of their own (SP_LAYOUT, SP_LAYOUT_STEP), or by the option `layout`.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "runtime/engine.hpp"

namespace stillpoint {

struct Session;

/// One step of the program, from data of one number to those of another.
struct LayoutStep {
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    int (*run)() = nullptr;  ///< 0: done; any other value: the process ends, and the pool stays as it was
};

/// A layout as a program states it.
struct StatedLayout {
    std::string name;
    std::uint64_t number = 0;
    std::vector<LayoutStep> steps;
};

/// The option's value, NAME:NUMBER. Errors: invalid_argument.
[[nodiscard]] Result<StatedLayout> parse_layout(std::string_view text);

/// The option, or else what the records of the modules that are loaded now say (`reads_records`); nullopt: neither says one.
/// Errors: invalid_argument (two layouts, or a step without a layout). Start-up only: reads files.
[[nodiscard]] Result<std::optional<StatedLayout>> stated_layout(std::string_view option, bool reads_records);

/// The steps from the number `from` to the layout's, in their order: the fewest that lead there; nullopt: none do.
[[nodiscard]] std::optional<std::vector<LayoutStep>> steps_between(const StatedLayout& stated, std::uint64_t from);

/// Compares what is stated with what the image has, which gets it where it has none yet. Returns the steps that are to be run.
/// Call before Engine::run(). Errors: layout; unsupported (steps, and the engine, or its way with threads, has none).
[[nodiscard]] Result<std::vector<LayoutStep>> settle_layout(Engine& engine, Programs programs, const StatedLayout& stated);

/// Runs the session's steps, which are then done: each with its new number as one failure-atomic unit, and then a checkpoint. The
/// session is in use; other threads have not touched its data. After an error the process must end, and the pool is as it was.
/// Errors: layout (a step failed); those of a checkpoint.
[[nodiscard]] Result<void> run_layout_steps(Session& session);

}  // namespace stillpoint

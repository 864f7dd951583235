#pragma once
// The cost of a checkpoint to its medium, counted: lines written back, fences, syncs, pages. The figures are golden: a
// changed one is a line in a diff, for review.

#include <string>

namespace stillpoint::explorer {

/// A table of every engine, profile and some workloads, the same on every machine.
/// `scratch` as ProgramRunner's. Throws std::runtime_error where a program fails.
[[nodiscard]] std::string count_checkpoints(const std::string& scratch);

}  // namespace stillpoint::explorer

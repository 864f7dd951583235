#pragma once
// The rules of restart points, as `stillpoint lint` holds them against a run:
//   - A variable whose first access after some restart point is a read, and that the thread writes later, is logged.
//   - Any other durable store is tracked: add_modified says so between the same two restart points.
//   - No restart point lies inside a critical section.
//   - A call that may block lies between checkpoint_allow and checkpoint_prevent.
//
// Threads: any; each has its own tables. No malloc.

#include "runtime/lint_rules.hpp"

namespace stillpoint::respct {

extern const lint::EngineRules lint_rules;

}  // namespace stillpoint::respct

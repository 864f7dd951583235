#pragma once
// The rules of transactions, as `stillpoint lint` holds them against a run: durable memory is written by transactions only, and read inside
// one through it. Code of `stillpoint cc --runtime=spht --lint` has hooks outside of transactions, and none in the clones that run inside.
//
// Threads: any. No malloc.

#include "runtime/lint_rules.hpp"

namespace stillpoint::spht {

extern const lint::EngineRules lint_rules;

}  // namespace stillpoint::spht

#pragma once
// The common state of the passes over one function: configuration, analyses, and what ends a FASE.

#include "configuration.hpp"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Module.h"
#include "site.hpp"

namespace stillpoint::nvhooks {

struct FunctionScope {
    llvm::Function& function;
    const Configuration& configuration;
    llvm::DominatorTree& dominators;
    llvm::LoopInfo& loops;
    llvm::ScalarEvolution& evolution;
    const llvm::TargetLibraryInfo& library;
    const llvm::TargetTransformInfo& costs;

    [[nodiscard]] const llvm::DataLayout& layout() const { return function.getParent()->getDataLayout(); }
    [[nodiscard]] const Layer& layer() const { return configuration.layer; }
};

/// Whether a FASE may begin or end at the instruction, or control may not come out of it: no hook may be moved
/// across. Where hooks are calls, an atomic access that synchronises is one too, since a lock of the
/// program's own may lie there; marks may be set late, and cross it.
[[nodiscard]] bool is_boundary(const llvm::Instruction& instruction, const Configuration& configuration);

/// Whether the pointer cannot be durable memory: stack, constants, functions, memory of malloc, and, where the
/// layer has a window, global variables, which the linker never puts there.
[[nodiscard]] bool is_provably_volatile(const llvm::Value* pointer, const FunctionScope& scope);

/// A pointer as a value and constant bytes after it.
struct Place {
    const llvm::Value* base;
    std::int64_t offset;
};
[[nodiscard]] Place place_of(const Site& site, const llvm::DataLayout& layout);

// The passes, in the order in which they run. Each appends to or removes from `sites`.

/// The initial pass [NVHooks §4.1.1]: every access that may touch durable memory. May split edges after invokes.
void collect_sites(FunctionScope& scope, Sites& sites, std::vector<PointerUse>& uses);
/// Collects sites as above, but for the loads and stores of loops and of what follows them only; changes nothing.
void collect_plain_sites(FunctionScope& scope, Sites& sites);
/// [§4.2.3]
void coalesce_loops(FunctionScope& scope, Sites& sites);
/// [§4.2.2]
void coalesce_fields(FunctionScope& scope, Sites& sites);
/// [§4.2.4]
void remove_extra_tracking(FunctionScope& scope, Sites& sites);
/// Sites before writes that are made together get `gathered_at`. Moves computations of addresses and sizes.
void gather_writes(FunctionScope& scope, llvm::AAResults& aliases, Sites& sites);
struct Emitted {
    unsigned hooks = 0;
    bool checks_before_loops = false;  ///< conditions in loops that do not change there
};
/// Writes the code: translation of pointers, checks, hooks and marks.
Emitted emit_sites(FunctionScope& scope, const Sites& sites, const std::vector<PointerUse>& uses);

}  // namespace stillpoint::nvhooks

#pragma once
// The passes: read the layer's configuration, and instrument each function of a module.

#include "llvm/IR/PassManager.h"

namespace stillpoint::nvhooks {

/// Instruments a module once; a module that was instrumented already is left as it is. A wrong configuration ends
/// the compilation with an error and no output.
class InstrumentPass : public llvm::PassInfoMixin<InstrumentPass> {
public:
    llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses);
    /// Also at -O0, and for functions marked optnone: correctness depends on it.
    static bool isRequired() { return true; }
};

/// Before vectorisation: makes the hooks of loops (coalesce-loops), and notes which accesses have them. Leaves a wrong
/// configuration for the other pass to report.
class HoistPass : public llvm::PassInfoMixin<HoistPass> {
public:
    llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses);
};

}  // namespace stillpoint::nvhooks

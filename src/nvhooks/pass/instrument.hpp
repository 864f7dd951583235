#pragma once
// The pass: reads the layer's configuration, and instruments each function of a module.

#include "llvm/IR/PassManager.h"

namespace stillpoint::nvhooks {

/// Instruments a module once; a module that was instrumented already is left as it is. A wrong configuration ends
/// the compilation with an error and no output.
class InstrumentPass : public llvm::PassInfoMixin<InstrumentPass> {
public:
    llvm::PreservedAnalyses run(llvm::Module &module, llvm::ModuleAnalysisManager &analyses);
    /// Also at -O0, and for functions marked optnone: correctness depends on it.
    static bool isRequired() { return true; }
};

}  // namespace stillpoint::nvhooks

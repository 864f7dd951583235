#pragma once
// Descriptions of the structures that lie in pools, made from debug information [Breeze, thesis §3.1.1]: what NVM_AUTO_TYPE asks for.

#include "llvm/IR/PassManager.h"

namespace stillpoint::nvhooks {

/// Before all optimisations. A structure that cannot be described ends the compilation with an error for each reason.
class DescribeTypesPass : public llvm::PassInfoMixin<DescribeTypesPass> {
public:
    llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses);
    static bool isRequired() { return true; }
};

/// Last: removes debug information that only the descriptions needed, where -stillpoint-drop-debug-info is given.
class DropDebugInfoPass : public llvm::PassInfoMixin<DropDebugInfoPass> {
public:
    llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses);
    static bool isRequired() { return true; }
};

}  // namespace stillpoint::nvhooks

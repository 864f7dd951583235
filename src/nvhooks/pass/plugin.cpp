// The plugin's entry: where in Clang's pipeline the instrumentation runs, and its options.
//
//   clang-19 -fplugin=P -fpass-plugin=P -mllvm -stillpoint-runtime=layers/NAME/layer.yaml ...
//
// (`stillpoint cc` writes that.) It runs after all other optimisations: instrumented code is opaque to them,
// and what they remove need not be tracked; structures are described before
// (describe_types.hpp). [NVHooks §4.2] instruments first and optimises its own hooks last;
// here both happen last, and the initial pass sees what is left to see.

#include "describe_types.hpp"
#include "instrument.hpp"
#include "llvm/Passes/PassBuilder.h"
#if __has_include("llvm/Plugins/PassPlugin.h")
#include "llvm/Plugins/PassPlugin.h"
#else
#include "llvm/Passes/PassPlugin.h"
#endif

namespace {

void register_passes(llvm::PassBuilder& builder)
{
    builder.registerPipelineParsingCallback(
        [](llvm::StringRef name, llvm::ModulePassManager& passes, llvm::ArrayRef<llvm::PassBuilder::PipelineElement>) {
            if (name != "stillpoint-nvhooks") {
                return false;
            }
            passes.addPass(stillpoint::nvhooks::HoistPass());
            passes.addPass(stillpoint::nvhooks::InstrumentPass());
            return true;
        });
    builder.registerPipelineStartEPCallback(
        [](llvm::ModulePassManager& passes, llvm::OptimizationLevel) { passes.addPass(stillpoint::nvhooks::DescribeTypesPass()); });
    builder.registerOptimizerEarlyEPCallback([](llvm::ModulePassManager& passes, llvm::OptimizationLevel level
#if LLVM_VERSION_MAJOR >= 20
                                                ,
                                                llvm::ThinOrFullLTOPhase
#endif
                                             ) {
        if (level != llvm::OptimizationLevel::O0) {
            passes.addPass(stillpoint::nvhooks::HoistPass());
        }
    });
    builder.registerOptimizerLastEPCallback([](llvm::ModulePassManager& passes, llvm::OptimizationLevel
#if LLVM_VERSION_MAJOR >= 20
                                               ,
                                               llvm::ThinOrFullLTOPhase
#endif
                                            ) {
        passes.addPass(stillpoint::nvhooks::InstrumentPass());
        passes.addPass(stillpoint::nvhooks::DropDebugInfoPass());
    });
}

}  // namespace

extern "C" __attribute__((visibility("default"))) llvm::PassPluginLibraryInfo llvmGetPassPluginInfo()
{
    return {LLVM_PLUGIN_API_VERSION, "stillpoint-nvhooks", STILLPOINT_VERSION, &register_passes};
}

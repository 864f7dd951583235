#include "instrument.hpp"

#include <algorithm>

#include "escaping_functions.hpp"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"
#include "llvm_version.hpp"
#include "module_record.hpp"
#include "nvhooks/abi/nvhooks_abi.h"
#include "scope.hpp"
#include "unknown_calls.hpp"

namespace stillpoint::nvhooks {

namespace {

llvm::cl::opt<std::string> runtime_option(
    "stillpoint-runtime", llvm::cl::value_desc("layer.yaml"),
    llvm::cl::desc("Configuration of the layer whose hooks are to be called"));

/// In a module: it is instrumented. LTO merges modules and runs passes once more.
constexpr llvm::StringRef done_name = "stillpoint.nvhooks";

llvm::Expected<Configuration> load_configuration(const std::string &path)
{
    if (path.empty()) {
        return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                       "no layer given: pass -mllvm -stillpoint-runtime=FILE, or compile with `stillpoint cc`");
    }
    auto layer = read_layer(path);
    if (!layer) {
        return layer.takeError();
    }
    Configuration configuration;
    configuration.layer = std::move(*layer);
    auto descriptions = Descriptions::load(configuration.layer.descriptions);
    if (!descriptions) {
        return descriptions.takeError();
    }
    configuration.descriptions = std::move(*descriptions);
    for (const std::string &function : configuration.layer.keeps_fase) {
        configuration.keeps_fase.insert(function);
    }
    for (const Allocator &allocator : configuration.layer.allocators) {
        std::optional<SizeExpression> &size = configuration.allocators[allocator.function];
        if (allocator.size.empty()) {
            continue;
        }
        auto expression = SizeExpression::parse(allocator.size);
        if (!expression) {
            return llvm::createStringError(llvm::inconvertibleErrorCode(), "%s: error: allocators: %s: %s", path.c_str(),
                                           allocator.function.c_str(), llvm::toString(expression.takeError()).c_str());
        }
        size = std::move(*expression);
    }
    return configuration;
}

/// The thread sanitizer gives programs memory in few places only: libstillpoint's window is another one then (stillpoint.h).
void follow_thread_sanitizer(const llvm::Module &module, Layer &layer)
{
    const bool sanitized = std::any_of(module.begin(), module.end(), [](const llvm::Function &function) {
        return function.hasFnAttribute(llvm::Attribute::SanitizeThread);
    });
    if (!sanitized || !layer.window || layer.window->shift != NVHOOKS_WINDOW_SHIFT || layer.window->index != NVHOOKS_WINDOW_INDEX) {
        return;
    }
    layer.window->index = NVHOOKS_WINDOW_INDEX_UNDER_TSAN;
    if (layer.cards && layer.cards->table == NVHOOKS_CARD_TABLE_FOR(NVHOOKS_WINDOW_INDEX)) {
        layer.cards->table = NVHOOKS_CARD_TABLE_FOR(NVHOOKS_WINDOW_INDEX_UNDER_TSAN);
    }
}

void report(llvm::Module &module, llvm::Error error)
{
    llvm::errs() << llvm::toString(std::move(error)) << '\n';
    module.getContext().emitError("stillpoint: the layer's configuration was not accepted (above); nothing was compiled");
}

/// What was found out about a function and its parameters does not hold once hooks see them: link-time
/// optimisation must not rely on it.
void forget_inferences(llvm::Function &function)
{
    function.removeFnAttr(llvm::Attribute::Memory);
    function.removeFnAttr(llvm::Attribute::NoSync);
    llvm::AttributeMask inferred;
    for (const auto kind : {llvm::Attribute::NoCapture, llvm::Attribute::ReadNone, llvm::Attribute::ReadOnly, llvm::Attribute::WriteOnly}) {
        inferred.addAttribute(kind);
    }
    for (llvm::Argument &argument : function.args()) {
        argument.removeAttrs(inferred);
    }
}

unsigned instrument(llvm::Function &function, const Configuration &configuration, llvm::FunctionAnalysisManager &analyses)
{
    FunctionScope scope{function,
                        configuration,
                        analyses.getResult<llvm::DominatorTreeAnalysis>(function),
                        analyses.getResult<llvm::LoopAnalysis>(function),
                        analyses.getResult<llvm::ScalarEvolutionAnalysis>(function),
                        analyses.getResult<llvm::TargetLibraryAnalysis>(function),
                        analyses.getResult<llvm::TargetIRAnalysis>(function)};
    report_unknown_calls(scope);
    Sites sites;
    std::vector<PointerUse> uses;
    collect_sites(scope, sites, uses);
    if (sites.empty() && uses.empty()) {
        return 0;
    }
    const Optimizations &optimizations = configuration.layer.optimizations;
    if (optimizations.coalesce_loops) {
        for (llvm::Loop *loop : scope.loops) {
            llvm::simplifyLoop(loop, &scope.dominators, &scope.loops, &scope.evolution, nullptr, nullptr, false);
        }
        coalesce_loops(scope, sites);
    }
    if (optimizations.coalesce_fields) {
        coalesce_fields(scope, sites);
    }
    if (optimizations.no_extra_tracking) {
        remove_extra_tracking(scope, sites);
    }
    return emit_sites(scope, sites, uses);
}

}  // namespace

llvm::PreservedAnalyses InstrumentPass::run(llvm::Module &module, llvm::ModuleAnalysisManager &analyses)
{
    if (module.getNamedMetadata(done_name) != nullptr) {
        return llvm::PreservedAnalyses::all();
    }
    auto configuration = load_configuration(runtime_option);
    if (!configuration) {
        report(module, configuration.takeError());
        return llvm::PreservedAnalyses::all();
    }
    if (auto error = configuration->descriptions.add_attributes(module)) {
        report(module, std::move(error));
        return llvm::PreservedAnalyses::all();
    }
    follow_thread_sanitizer(module, configuration->layer);
    module.getOrInsertNamedMetadata(done_name);
    const bool reads = configuration->layer.has(Hook::pre_nvm_read) || configuration->layer.has(Hook::post_nvm_read) ||
                       configuration->layer.has(Hook::to_absolute_ptr);
    report_unwrapped(replace_escaping_functions(module, configuration->descriptions, reads));
    auto &functions = analyses.getResult<llvm::FunctionAnalysisManagerModuleProxy>(module).getManager();
    unsigned hooks = 0;
    for (llvm::Function &function : module) {
        if (function.isDeclaration() || function.hasAvailableExternallyLinkage() || function.hasFnAttribute(llvm::Attribute::Naked)) {
            continue;
        }
        const unsigned made = instrument(function, *configuration, functions);
        hooks += made;
        forget_inferences(function);
        if (made != 0) {
            keep_apart(function);
        }
    }
    add_module_record(module, configuration->layer, hooks);
    return llvm::PreservedAnalyses::none();
}

}  // namespace stillpoint::nvhooks

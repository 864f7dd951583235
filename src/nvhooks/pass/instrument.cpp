#include "instrument.hpp"

#include <algorithm>

#include "blocking_calls.hpp"
#include "escaping_functions.hpp"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/SimpleLoopUnswitch.h"
#include "llvm/Transforms/Utils/LoopSimplify.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"
#include "hoisted.hpp"
#include "library_bodies.hpp"
#include "llvm_version.hpp"
#include "module_record.hpp"
#include "nvhooks/abi/nvhooks_abi.h"
#include "scope.hpp"
#include "transactional_clones.hpp"
#include "unknown_calls.hpp"

namespace stillpoint::nvhooks {

namespace {

/// In a module: it is instrumented. LTO merges modules and runs passes once more.
constexpr llvm::StringRef done_name = "stillpoint.nvhooks";

void report(llvm::Module& module, llvm::Error error)
{
    llvm::errs() << llvm::toString(std::move(error)) << '\n';
    module.getContext().emitError("stillpoint: the layer's configuration was not accepted (above); nothing was compiled");
}

/// Attributes that were inferred for a function and its parameters do not hold once hooks see them: link-time
/// optimisation must not rely on it.
void forget_inferences(llvm::Function& function)
{
    function.removeFnAttr(llvm::Attribute::Memory);
    function.removeFnAttr(llvm::Attribute::NoSync);
    llvm::AttributeMask inferred;
    for (const auto kind : {llvm::Attribute::NoCapture, llvm::Attribute::ReadNone, llvm::Attribute::ReadOnly, llvm::Attribute::WriteOnly}) {
        inferred.addAttribute(kind);
    }
    for (llvm::Argument& argument : function.args()) {
        argument.removeAttrs(inferred);
    }
}

FunctionScope scope_of(llvm::Function& function, const Configuration& configuration, llvm::FunctionAnalysisManager& analyses)
{
    return {function,
            configuration,
            analyses.getResult<llvm::DominatorTreeAnalysis>(function),
            analyses.getResult<llvm::LoopAnalysis>(function),
            analyses.getResult<llvm::ScalarEvolutionAnalysis>(function),
            analyses.getResult<llvm::TargetLibraryAnalysis>(function),
            analyses.getResult<llvm::TargetIRAnalysis>(function)};
}

/// Not transactional clones, whose accesses are calls; nor the hooks themselves, where a shim is compiled with the plugin: they would
/// call themselves.
bool is_to_be_instrumented(const llvm::Function& function)
{
    const bool has_body = !function.isDeclaration() && !function.hasAvailableExternallyLinkage();
    const bool is_hook = function.getName().starts_with("nvhooks_");
    return has_body && !is_hook && !is_clone_name(function.getName()) && !function.hasFnAttribute(llvm::Attribute::Naked);
}

/// Loops get the blocks before and after them where hooks can stand.
void shape_loops(FunctionScope& scope)
{
    for (llvm::Loop* loop : scope.loops) {
        llvm::simplifyLoop(loop, &scope.dominators, &scope.loops, &scope.evolution, nullptr, nullptr, false);
    }
}

/// A loop whose checks were made before it becomes two: one for durable memory, and the program's own, as it was, for other memory.
void unswitch_loops(llvm::Function& function, llvm::FunctionAnalysisManager& analyses)
{
    analyses.invalidate(function, llvm::PreservedAnalyses::none());
    llvm::FunctionPassManager passes;
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::SimpleLoopUnswitchPass(/*NonTrivial=*/true)));
    analyses.invalidate(function, passes.run(function, analyses));
}

unsigned hoist(llvm::Function& function, const Configuration& configuration, llvm::FunctionAnalysisManager& analyses)
{
    FunctionScope scope = scope_of(function, configuration, analyses);
    if (scope.loops.empty()) {
        return 0;
    }
    shape_loops(scope);
    Sites sites;
    collect_plain_sites(scope, sites);
    coalesce_loops(scope, sites);
    if (configuration.layer.optimizations.no_extra_tracking) {
        remove_extra_tracking(scope, sites);  // e.g. of new blocks
    }
    Sites hoisted;
    for (const Site& site : sites) {
        if (site.hoisted && !site.removed) {
            hoisted.push_back(site);
            for (llvm::Instruction* access : site.accesses) {
                note_hoisted(*access, site.kind);
            }
        }
    }
    return emit_sites(scope, hoisted, {}).hooks;
}

unsigned instrument(llvm::Function& function, const Configuration& configuration, llvm::FunctionAnalysisManager& analyses)
{
    FunctionScope scope = scope_of(function, configuration, analyses);
    if (!configuration.layer.transactions) {  // else what is unknown is reported of transactions
        report_unknown_calls(scope);
    }
    Sites sites;
    std::vector<PointerUse> uses;
    collect_sites(scope, sites, uses);
    const unsigned blocking_calls = emit_blocking_calls(scope);
    if (sites.empty() && uses.empty()) {
        return blocking_calls;
    }
    const Optimizations& optimizations = configuration.layer.optimizations;
    if (optimizations.coalesce_loops) {
        shape_loops(scope);
        coalesce_loops(scope, sites);
    }
    if (optimizations.coalesce_fields) {
        coalesce_fields(scope, sites);
    }
    if (optimizations.no_extra_tracking) {
        remove_extra_tracking(scope, sites);
    }
    if (configuration.layer.has(Hook::pre_nvm_write_gathered)) {
        gather_writes(scope, analyses.getResult<llvm::AAManager>(function), sites);
    }
    const Emitted emitted = emit_sites(scope, sites, uses);
    if (emitted.checks_before_loops && !function.hasOptNone() && !function.hasOptSize()) {
        unswitch_loops(function, analyses);
    }
    return emitted.hooks + blocking_calls;
}

bool has_hoisted(const llvm::Function& function)
{
    return std::any_of(llvm::inst_begin(function), llvm::inst_end(function), [](const llvm::Instruction& instruction) {
        return instruction.getMetadata(llvm::LLVMContext::MD_access_group) != nullptr;
    });
}

/// How many hooks the early pass made in the module.
constexpr llvm::StringRef hoisted_count_name = "stillpoint.hoisted.count";

unsigned hoisted_count(const llvm::Module& module)
{
    const llvm::NamedMDNode* count = module.getNamedMetadata(hoisted_count_name);
    return count == nullptr
               ? 0
               : static_cast<unsigned>(llvm::mdconst::extract<llvm::ConstantInt>(count->getOperand(0)->getOperand(0))->getZExtValue());
}

void note_hoisted_count(llvm::Module& module, unsigned hooks)
{
    llvm::LLVMContext& context = module.getContext();
    llvm::Metadata* count = llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), hooks));
    module.getOrInsertNamedMetadata(hoisted_count_name)->addOperand(llvm::MDNode::get(context, {count}));
}

}  // namespace

llvm::PreservedAnalyses HoistPass::run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses)
{
    if (module.getNamedMetadata(done_name) != nullptr || module.getNamedMetadata(hoisted_count_name) != nullptr) {
        return llvm::PreservedAnalyses::all();
    }
    auto configuration = configuration_of(module);
    if (!configuration) {
        llvm::consumeError(configuration.takeError());
        return llvm::PreservedAnalyses::all();
    }
    if (!configuration->layer.optimizations.coalesce_loops || configuration->layer.hooks.empty()) {
        return llvm::PreservedAnalyses::all();
    }
    auto& functions = analyses.getResult<llvm::FunctionAnalysisManagerModuleProxy>(module).getManager();
    unsigned hooks = 0;
    for (llvm::Function& function : module) {
        if (is_to_be_instrumented(function) && !function.hasOptNone()) {
            hooks += hoist(function, *configuration, functions);
        }
    }
    note_hoisted_count(module, hooks);
    if (hooks != 0) {
        for (llvm::Function& function : module) {
            if (is_to_be_instrumented(function)) {
                forget_inferences(function);
            }
        }
    }
    return llvm::PreservedAnalyses::none();
}

llvm::PreservedAnalyses InstrumentPass::run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses)
{
    if (module.getNamedMetadata(done_name) != nullptr) {
        return llvm::PreservedAnalyses::all();
    }
    auto configuration = configuration_of(module);
    if (!configuration) {
        report(module, configuration.takeError());
        return llvm::PreservedAnalyses::all();
    }
    if (auto error = use_library_bodies(module)) {
        report(module, std::move(error));
        return llvm::PreservedAnalyses::all();
    }
    module.getOrInsertNamedMetadata(done_name);
    unsigned hooks = hoisted_count(module);
    if (configuration->layer.transactions) {
        hooks += make_transactional_clones(module, *configuration);
        if (configuration->layer.hooks.empty()) {
            record_functions(module);
            add_module_record(module, configuration->layer, hooks);
            return llvm::PreservedAnalyses::none();
        }
    }
    const bool reads = configuration->layer.has(Hook::pre_nvm_read) || configuration->layer.has(Hook::post_nvm_read) ||
                       configuration->layer.has(Hook::to_absolute_ptr);
    report_unwrapped(replace_escaping_functions(module, configuration->descriptions, reads));
    auto& functions = analyses.getResult<llvm::FunctionAnalysisManagerModuleProxy>(module).getManager();
    for (llvm::Function& function : module) {
        if (!is_to_be_instrumented(function)) {
            continue;
        }
        const unsigned made = instrument(function, *configuration, functions);
        hooks += made;
        forget_inferences(function);
        if (made != 0 || has_hoisted(function)) {
            keep_apart(function);
        }
    }
    record_functions(module);
    add_module_record(module, configuration->layer, hooks);
    return llvm::PreservedAnalyses::none();
}

}  // namespace stillpoint::nvhooks

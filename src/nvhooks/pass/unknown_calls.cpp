#include "unknown_calls.hpp"

#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Support/CommandLine.h"

namespace stillpoint::nvhooks {

namespace {

enum class Report : std::uint8_t { off, warn, error };

llvm::cl::opt<Report> unknown_call_option(
    "stillpoint-unknown-call", llvm::cl::desc("Calls that are passed a pointer, of functions that nothing is known of"),
    llvm::cl::init(Report::off),
    llvm::cl::values(clEnumValN(Report::off, "off", "are accepted"), clEnumValN(Report::warn, "warn", "get a warning"),
                     clEnumValN(Report::error, "error", "are errors")));

constexpr const char *flag = " [-Wstillpoint-unknown-call]";

void diagnose(const llvm::Function &function, const llvm::DebugLoc &where, const llvm::Twine &message)
{
    const auto severity = unknown_call_option == Report::error ? llvm::DS_Error : llvm::DS_Warning;
    const std::string text = (message + flag).str();
    function.getContext().diagnose(llvm::DiagnosticInfoUnsupported(function, text, where, severity));
}

/// The first argument through which the callee may write durable memory.
std::optional<unsigned> writable_argument(const llvm::CallBase &call, const FunctionScope &scope)
{
    for (unsigned i = 0; i < call.arg_size(); ++i) {
        const llvm::Value *argument = call.getArgOperand(i);
        if (argument->getType()->isPointerTy() && !call.onlyReadsMemory(i) && !call.isByValArgument(i) &&
            !is_provably_volatile(argument, scope)) {
            return i;
        }
    }
    return std::nullopt;
}

bool is_layers_own(const llvm::Function &callee, const llvm::CallBase &call, const Configuration &configuration)
{
    return configuration.is_allocator(call) || configuration.keeps_fase.contains(callee.getName()) ||
           callee.getName().starts_with("nvhooks_");
}

void examine(const llvm::CallBase &call, const FunctionScope &scope)
{
    const std::optional<unsigned> argument = writable_argument(call, scope);
    if (!argument) {
        return;
    }
    if (call.isInlineAsm()) {
        if (call.mayWriteToMemory()) {
            diagnose(scope.function, call.getDebugLoc(), "inline assembly is passed a pointer: what it stores has no hooks");
        }
        return;
    }
    const auto *callee = llvm::dyn_cast<llvm::Function>(call.getCalledOperand()->stripPointerCastsAndAliases());
    const bool has_body = callee != nullptr && !callee->isDeclaration() && !callee->hasAvailableExternallyLinkage();
    if (callee == nullptr || callee->isIntrinsic() || has_body || is_layers_own(*callee, call, scope.configuration)) {
        return;
    }
    const FunctionDescription *description = scope.configuration.descriptions.find(call);
    if (description != nullptr && description->complete) {
        return;
    }
    const llvm::StringRef what = description == nullptr ? "' has no description: what it writes"
                                                        : "' is described in part: what else it writes";
    diagnose(scope.function, call.getDebugLoc(),
             "'" + callee->getName() + what + " through argument " + llvm::Twine(*argument + 1) + " has no hooks");
}

}  // namespace

void report_unknown_calls(const FunctionScope &scope)
{
    if (unknown_call_option == Report::off) {
        return;
    }
    for (const llvm::Instruction &instruction : llvm::instructions(scope.function)) {
        if (const auto *call = llvm::dyn_cast<llvm::CallBase>(&instruction)) {
            examine(*call, scope);
        }
    }
}

void report_unwrapped(llvm::ArrayRef<llvm::Function *> functions)
{
    if (unknown_call_option == Report::off) {
        return;
    }
    for (const llvm::Function *function : functions) {
        diagnose(*function, llvm::DebugLoc(), "the address of '" + function->getName() + "' is taken: calls through it have no hooks");
    }
}

}  // namespace stillpoint::nvhooks

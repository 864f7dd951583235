#include "unknown_calls.hpp"

#include <algorithm>

#include "constant_parameters.hpp"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/xxhash.h"
#include "nvhooks/abi/nvhooks_abi.h"

namespace stillpoint::nvhooks {

namespace {

enum class Report : std::uint8_t { off, record, warn, error };

llvm::cl::opt<Report> unknown_call_option(
    "stillpoint-unknown-call", llvm::cl::desc("Calls that are passed a pointer, of functions that nothing is known of"),
    llvm::cl::init(Report::off),
    llvm::cl::values(clEnumValN(Report::off, "off", "are accepted"),
                     clEnumValN(Report::record, "record", "are noted in the object, for the command that links"),
                     clEnumValN(Report::warn, "warn", "get a warning"), clEnumValN(Report::error, "error", "are errors")));

constexpr const char* flag = " [-Wstillpoint-unknown-call]";

/// As directives in the module: the section is in no program's memory, and its strings are each there once.
void record(llvm::Module& module, llvm::StringRef section, llvm::ArrayRef<std::string> entries)
{
    std::string text;
    for (std::string entry : entries) {
        std::replace_if(entry.begin(), entry.end(), [](char c) { return c == '"' || c == '\\' || !llvm::isPrint(c); }, '?');
        text += ".asciz \"" + entry + "\"\n";
    }
    module.appendModuleInlineAsm((".pushsection " + section + ",\"MS\",%progbits,1\n" + text + ".popsection").str());
}

/// `callee` is empty where there is no function: it is known then that it has no hooks.
void diagnose(llvm::Function& function, llvm::StringRef callee, const llvm::DebugLoc& where, const llvm::Twine& message)
{
    if (unknown_call_option == Report::record) {
        record(*function.getParent(), NVHOOKS_UNKNOWN_CALLS_SECTION,
               (callee + "|" + place_in_source(function, where) + "|" + message).str());
        return;
    }
    const auto severity = unknown_call_option == Report::error ? llvm::DS_Error : llvm::DS_Warning;
    const std::string text = (message + flag).str();
    function.getContext().diagnose(llvm::DiagnosticInfoUnsupported(function, text, where, severity));
}

/// An operand of inline assembly that is said to be written: it has hooks.
bool is_operand_in_memory(const llvm::CallBase& call, unsigned argument)
{
    return call.isInlineAsm() && call.getParamElementType(argument) != nullptr;
}

/// A pointer to nothing, or to one of the standard streams.
bool is_of_no_memory(const llvm::Value* argument)
{
    if (llvm::isa<llvm::ConstantPointerNull>(argument) || llvm::isa<llvm::UndefValue>(argument)) {
        return true;
    }
    const auto* load = llvm::dyn_cast<llvm::LoadInst>(argument);
    const auto* variable = load != nullptr ? llvm::dyn_cast<llvm::GlobalVariable>(load->getPointerOperand()) : nullptr;
    const llvm::StringRef name = variable != nullptr && variable->isDeclaration() ? variable->getName() : "";
    return name == "stdin" || name == "stdout" || name == "stderr";
}

/// The first argument through which the callee may write durable memory; `only` is the one to look at.
std::optional<unsigned> writable_argument(const llvm::CallBase& call, const FunctionScope& scope,
                                          std::optional<unsigned> only = std::nullopt)
{
    const unsigned end = only ? std::min(*only + 1, call.arg_size()) : call.arg_size();
    for (unsigned i = only.value_or(0); i < end; ++i) {
        const llvm::Value* argument = call.getArgOperand(i);
        if (argument->getType()->isPointerTy() && !call.onlyReadsMemory(i) && !call.isByValArgument(i) && !is_of_no_memory(argument) &&
            !is_provably_volatile(argument, scope) && !is_constant_parameter(call, i) && !is_operand_in_memory(call, i)) {
            return i;
        }
    }
    return std::nullopt;
}

bool is_layers_own(const llvm::Function& callee, const llvm::CallBase& call, const Configuration& configuration)
{
    return configuration.is_allocator(call) || configuration.keeps_fase.contains(callee.getName()) ||
           callee.getName().starts_with("nvhooks_");
}

void examine(const llvm::CallBase& call, const FunctionScope& scope)
{
    const std::optional<unsigned> argument = writable_argument(call, scope);
    if (!argument) {
        return;
    }
    if (call.isInlineAsm()) {
        if (call.mayWriteToMemory()) {
            diagnose(scope.function, "", call.getDebugLoc(), "inline assembly is passed a pointer: what it stores has no hooks");
        }
        return;
    }
    const auto* callee = llvm::dyn_cast<llvm::Function>(call.getCalledOperand()->stripPointerCastsAndAliases());
    const bool has_body = callee != nullptr && !callee->isDeclaration() && !callee->hasAvailableExternallyLinkage();
    if (callee == nullptr || callee->isIntrinsic() || has_body || is_layers_own(*callee, call, scope.configuration)) {
        return;
    }
    const FunctionDescription* description = scope.configuration.descriptions.find(call);
    const auto through = description == nullptr ? argument : writable_argument(call, scope, description->rest_argument);
    if (!through || (description != nullptr && description->complete)) {
        return;
    }
    const llvm::StringRef what = description == nullptr ? "' has no description: what it writes"
                                                        : "' is described in part: what else it writes";
    // A function that is described in part stays so, wherever it comes from; one that is not described may have hooks of its own.
    diagnose(scope.function, description == nullptr ? callee->getName() : "", call.getDebugLoc(),
             "'" + callee->getName() + what + " through argument " + llvm::Twine(*through + 1) + " has no hooks");
}

}  // namespace

void report_unknown_calls(const FunctionScope& scope)
{
    if (unknown_call_option == Report::off) {
        return;
    }
    for (const llvm::Instruction& instruction : llvm::instructions(scope.function)) {
        if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction)) {
            examine(*call, scope);
        }
    }
}

bool records_unknown_calls() { return unknown_call_option == Report::record; }

std::string place_in_source(const llvm::Function& function, const llvm::DebugLoc& where)
{
    if (where) {
        return (where->getFilename() + ":" + llvm::Twine(where.getLine()) + ":" + llvm::Twine(where.getCol())).str();
    }
    return (function.getParent()->getSourceFileName() + ": in function " + function.getName()).str();
}

void report_irrevocable(const llvm::Instruction& where, llvm::Function& function, const llvm::Twine& reason)
{
    if (unknown_call_option == Report::warn || unknown_call_option == Report::error) {
        diagnose(function, "", where.getDebugLoc(), reason);
    }
}

void record_irrevocable(llvm::Module& module, llvm::ArrayRef<std::string> entries)
{
    if (!entries.empty()) {
        record(module, NVHOOKS_IRREVOCABLE_SECTION, entries);
    }
}

void record_functions(llvm::Module& module)
{
    if (unknown_call_option != Report::record) {
        return;
    }
    std::string numbers;
    const auto add = [&](const llvm::GlobalValue& value) {
        if (!value.isDeclaration() && (value.hasExternalLinkage() || value.hasWeakLinkage())) {
            numbers += (numbers.empty() ? ".quad " : ",") + std::to_string(llvm::xxh3_64bits(value.getName()));
        }
    };
    for (const llvm::Function& function : module) {
        add(function);
    }
    for (const llvm::GlobalAlias& alias : module.aliases()) {
        add(alias);  // e.g. a constructor that is the same as another
    }
    if (!numbers.empty()) {
        module.appendModuleInlineAsm(".pushsection " NVHOOKS_FUNCTIONS_SECTION ",\"\",%progbits\n" + numbers + "\n.popsection");
    }
}

void report_unwrapped(llvm::ArrayRef<llvm::Function*> functions)
{
    if (unknown_call_option == Report::off) {
        return;
    }
    for (llvm::Function* function : functions) {
        diagnose(*function, "", llvm::DebugLoc(), "the address of '" + function->getName() + "' is taken: calls through it have no hooks");
    }
}

}  // namespace stillpoint::nvhooks

#include "transactional_clones.hpp"

#include <deque>
#include <set>

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"
#include "llvm_version.hpp"
#include "transactional_body.hpp"
#include "unknown_calls.hpp"

namespace stillpoint::nvhooks {

namespace {

constexpr llvm::StringRef clone_prefix = "_ZGTt";
/// The functions that run a body as a transaction: the one that programs call, and the one that is told the clone (stillpoint/itm.h).
constexpr llvm::StringRef run_name = "sp_tm_run";
constexpr llvm::StringRef run_pair_name = "sp_tm_run_pair";
/// annotate("…"): the function may be called inside transactions as it is.
constexpr llvm::StringRef pure_annotation = "sp_tm_pure";

bool is_name_in(const std::vector<std::string>& names, llvm::StringRef name)
{
    return llvm::any_of(names, [name](llvm::StringRef one) { return one.consume_back("*") ? name.starts_with(one) : name == one; });
}

/// Not a weak function, unless of C++: another unit may replace it, and have no clone.
bool has_body(const llvm::Function& function)
{
    return !function.isDeclaration() && !function.hasAvailableExternallyLinkage() && !function.hasFnAttribute(llvm::Attribute::Naked) &&
           !llvm::GlobalValue::isInterposableLinkage(function.getLinkage());
}

/// Called by the compiler's start files or by the library, never inside a transaction.
bool is_never_inside(llvm::StringRef name)
{
    return name == "main" || name.starts_with("_GLOBAL__") || name.starts_with("__cxx_global_") || name.starts_with("nvhooks_") ||
           name.starts_with("_ITM_");
}

llvm::SmallPtrSet<const llvm::Function*, 8> annotated_as_pure(const llvm::Module& module)
{
    llvm::SmallPtrSet<const llvm::Function*, 8> found;
    const llvm::GlobalVariable* annotations = module.getGlobalVariable("llvm.global.annotations");
    const auto* list = annotations != nullptr ? llvm::dyn_cast<llvm::ConstantArray>(annotations->getInitializer()) : nullptr;
    if (list == nullptr) {
        return found;
    }
    for (const llvm::Use& element : list->operands()) {
        const auto* annotation = llvm::cast<llvm::ConstantStruct>(element);
        llvm::StringRef text;
        if (llvm::getConstantStringInfo(annotation->getOperand(1), text) && text == pure_annotation) {
            if (const auto* function = llvm::dyn_cast<llvm::Function>(annotation->getOperand(0)->stripPointerCasts())) {
                found.insert(function);
            }
        }
    }
    return found;
}

/// A clone calls the library: inferences about the function do not hold for it.
void forget_inferences(llvm::Function& clone)
{
    for (const auto kind : {llvm::Attribute::Memory, llvm::Attribute::NoSync, llvm::Attribute::NoFree, llvm::Attribute::Speculatable,
                            llvm::Attribute::WillReturn, llvm::Attribute::NoRecurse}) {
        clone.removeFnAttr(kind);
    }
    llvm::AttributeMask inferred;
    for (const auto kind : {llvm::Attribute::NoCapture, llvm::Attribute::ReadNone, llvm::Attribute::ReadOnly, llvm::Attribute::WriteOnly}) {
        inferred.addAttribute(kind);
    }
    for (llvm::Argument& argument : clone.args()) {
        argument.removeAttrs(inferred);
    }
}

class Cloner {
public:
    Cloner(llvm::Module& module, const Configuration& configuration)
        : module_(module), names_(*configuration.layer.transactions), pure_(annotated_as_pure(module))
    {
    }

    unsigned run()
    {
        find_functions_of_transactions();
        llvm::SmallVector<llvm::Function*, 32> functions;
        llvm::SmallVector<llvm::Function*, 32> pointed_to;
        for (llvm::Function& function : module_) {
            if (function.isIntrinsic() || is_never_inside(function.getName()) || is_clone_name(function.getName()) || is_pure(function)) {
                continue;
            }
            const bool is_pointed_to = function.hasAddressTaken(nullptr, /*IgnoreCallbackUses=*/false, /*IgnoreAssumeLikeCalls=*/true,
                                                                /*IngoreLLVMUsed=*/true);
            if (is_pointed_to) {
                pointed_to.push_back(&function);
            }
            if (has_body(function) && (is_pointed_to || !function.isDiscardableIfUnused())) {
                functions.push_back(&function);
            }
        }
        for (llvm::Function* function : functions) {
            static_cast<void>(clone_for(*function));
        }
        const ClonePlan plan{[this](const llvm::CallBase& call, llvm::Function& callee) { return choose(call, callee); },
                             [this](const llvm::Instruction& where, const llvm::Function* callee, llvm::StringRef reason) {
                                 note_irrevocable(where, callee, reason);
                             }};
        unsigned replaced = 0;
        while (!unfinished_.empty()) {  // a clone's calls make further ones
            llvm::Function* clone = unfinished_.front();
            unfinished_.pop_front();
            replaced += rewrite_as_transactional(*clone, plan);
        }
        name_clones_of_aliases();
        add_table(pointed_to);
        name_clones_of_bodies();
        record_irrevocable(module_, entries_.takeVector());
        return replaced;
    }

private:
    [[nodiscard]] bool is_pure(const llvm::Function& function) const
    {
        return pure_.contains(&function) || is_name_in(names_.pure, function.getName());
    }

    /// Finds the functions that a transaction of this unit reaches by direct calls: what makes it irrevocable there is reported.
    void find_functions_of_transactions()
    {
        llvm::SmallVector<const llvm::Function*, 16> open;
        const auto reach = [&](const llvm::Value* value) {
            const auto* function = llvm::dyn_cast<llvm::Function>(value->stripPointerCastsAndAliases());
            if (function != nullptr && has_body(*function) && !is_pure(*function) && of_transactions_.insert(function).second) {
                open.push_back(function);
            }
        };
        if (const llvm::Function* run = module_.getFunction(run_name)) {
            for (const llvm::User* user : run->users()) {
                const auto* call = llvm::dyn_cast<llvm::CallBase>(user);
                if (call != nullptr && call->getCalledOperand() == run && call->arg_size() != 0) {
                    reach(call->getArgOperand(0));
                    if (const auto* body = llvm::dyn_cast<llvm::Function>(call->getArgOperand(0)->stripPointerCastsAndAliases())) {
                        note("|" + name_in_program(*body) + "||");
                    }
                }
            }
        }
        while (!open.empty()) {
            for (const llvm::Instruction& instruction : llvm::instructions(*open.pop_back_val())) {
                if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction)) {
                    reach(call->getCalledOperand());
                }
            }
        }
    }

    llvm::Function* clone_for(llvm::Function& function)
    {
        llvm::Function*& clone = clones_[&function];
        if (clone != nullptr) {
            return clone;
        }
        const std::string name = clone_name_of(function.getName());
        llvm::Function* declared = module_.getFunction(name);
        llvm::ValueToValueMapTy values;
        clone = llvm::CloneFunction(&function, values);
        if (declared != nullptr) {
            declared->replaceAllUsesWith(clone);
            declared->eraseFromParent();
        }
        clone->setName(name);
        if (const llvm::Comdat* comdat = function.getComdat()) {
            llvm::Comdat* own = module_.getOrInsertComdat(name);
            own->setSelectionKind(comdat->getSelectionKind());
            clone->setComdat(own);
        }
        forget_inferences(*clone);
        originals_[clone] = &function;
        unfinished_.push_back(clone);
        return clone;
    }

    /// A declaration of a function that another unit or a library has.
    llvm::Constant* declared_clone(const llvm::Function& function, bool is_certain)
    {
        const std::string name = clone_name_of(function.getName());
        if (llvm::GlobalValue* known = module_.getNamedValue(name)) {
            return known;
        }
        llvm::Function* clone = llvm::Function::Create(
            function.getFunctionType(), is_certain ? llvm::GlobalValue::ExternalLinkage : llvm::GlobalValue::ExternalWeakLinkage, name,
            module_);
        clone->setCallingConv(function.getCallingConv());
        return clone;
    }

    CalleeChoice choose(const llvm::CallBase& call, llvm::Function& callee)
    {
        if (is_pure(callee) || is_clone_name(callee.getName()) || callee.getName().starts_with("_ITM_") || callee.doesNotAccessMemory()) {
            return {};
        }
        if (has_body(callee)) {
            note(name_in_program(*originals_.lookup(call.getFunction())) + "|" + name_in_program(callee) + "||");
            return {CalleeChoice::Kind::clone, clone_for(callee)};
        }
        const bool is_certain = is_name_in(names_.cloned, callee.getName());
        return {is_certain ? CalleeChoice::Kind::clone : CalleeChoice::Kind::clone_or_irrevocable, declared_clone(callee, is_certain)};
    }

    /// For the command that links, which knows what other units call, and have.
    void note(const std::string& entry)
    {
        if (records_unknown_calls()) {
            entries_.insert(entry);
        }
    }

    [[nodiscard]] std::string name_in_program(const llvm::Function& function) const
    {
        return clone_name_of(function.getName()) + (function.hasLocalLinkage() ? "@" + module_.getSourceFileName() : "");
    }

    void note_irrevocable(const llvm::Instruction& where, const llvm::Function* callee, llvm::StringRef reason)
    {
        llvm::Function& original = *originals_.lookup(where.getFunction());
        const std::string text = (callee != nullptr ? "a call of '" + callee->getName() + "', which has no clone for transactions,"
                                                    : llvm::Twine(reason))
                                     .str() +
                                 " makes the transaction irrevocable";
        if (of_transactions_.contains(&original)) {
            report_irrevocable(where, original, text);
        }
        const std::string edge = name_in_program(original) + "|" + (callee != nullptr ? clone_name_of(callee->getName()) : "") + "|";
        note(edge + place_in_source(original, where.getDebugLoc()) + "|" + text);
        if (callee != nullptr) {
            note(edge + "|");
        }
    }

    /// A constructor, mostly, that is the same as another one.
    void name_clones_of_aliases()
    {
        llvm::SmallVector<llvm::GlobalAlias*, 8> aliases;
        for (llvm::GlobalAlias& alias : module_.aliases()) {
            aliases.push_back(&alias);
        }
        for (llvm::GlobalAlias* alias : aliases) {
            auto* function = llvm::dyn_cast<llvm::Function>(alias->getAliasee()->stripPointerCastsAndAliases());
            llvm::Function* clone = function != nullptr ? clones_.lookup(function) : nullptr;
            const std::string name = clone_name_of(alias->getName());
            if (clone == nullptr || module_.getNamedValue(name) != nullptr) {
                continue;
            }
            auto* made = llvm::GlobalAlias::create(clone->getValueType(), 0, alias->getLinkage(), name, clone, &module_);
            made->setVisibility(alias->getVisibility());
            note(name + "|" + name_in_program(*function) + "||");
        }
    }

    /// Pairs of a function and its clone, as GCC writes them. One without a clone has a null there: the program's other units may have it.
    void add_table(llvm::ArrayRef<llvm::Function*> functions)
    {
        llvm::Type* pointer = llvm::PointerType::getUnqual(module_.getContext());
        llvm::SmallVector<llvm::Constant*, 64> words;
        for (llvm::Function* function : functions) {
            if (function->hasAvailableExternallyLinkage() || function->hasExternalWeakLinkage()) {
                continue;
            }
            llvm::Function* clone = clones_.lookup(function);
            words.push_back(function);
            words.push_back(clone != nullptr ? clone : declared_clone(*function, false));
        }
        if (words.empty()) {
            return;
        }
        auto* type = llvm::ArrayType::get(pointer, words.size());
        auto* table = new llvm::GlobalVariable(module_, type, /*isConstant=*/false, llvm::GlobalValue::InternalLinkage,
                                               llvm::ConstantArray::get(type, words), "stillpoint.tm_clone_table");
        table->setSection(".tm_clone_table");
        table->setAlignment(llvm::Align(8));
        llvm::appendToUsed(module_, {table});
    }

    /// Calls that run a known body are told its clone: no table is searched.
    void name_clones_of_bodies()
    {
        llvm::Function* run = module_.getFunction(run_name);
        if (run == nullptr) {
            return;
        }
        llvm::SmallVector<llvm::CallBase*, 8> calls;
        for (llvm::User* user : run->users()) {
            auto* call = llvm::dyn_cast<llvm::CallInst>(user);
            if (call != nullptr && call->getCalledOperand() == run && call->arg_size() == 3) {
                calls.push_back(call);
            }
        }
        for (llvm::CallBase* call : calls) {
            auto* body = llvm::dyn_cast<llvm::Function>(call->getArgOperand(0)->stripPointerCastsAndAliases());
            llvm::Function* clone = body != nullptr ? clones_.lookup(body) : nullptr;
            if (clone == nullptr) {
                continue;
            }
            llvm::IRBuilder<> builder(call);
            llvm::FunctionCallee pair = module_.getOrInsertFunction(run_pair_name, call->getType(), builder.getPtrTy(), builder.getPtrTy(),
                                                                    builder.getPtrTy(), call->getArgOperand(2)->getType());
            llvm::CallInst* made = builder.CreateCall(pair,
                                                      {call->getArgOperand(0), clone, call->getArgOperand(1), call->getArgOperand(2)});
            made->setDebugLoc(call->getDebugLoc());
            call->replaceAllUsesWith(made);
            call->eraseFromParent();
        }
    }

    llvm::Module& module_;
    const Transactions& names_;
    llvm::SmallPtrSet<const llvm::Function*, 8> pure_;
    llvm::SmallPtrSet<const llvm::Function*, 16> of_transactions_;
    llvm::DenseMap<llvm::Function*, llvm::Function*> clones_;
    llvm::DenseMap<const llvm::Function*, llvm::Function*> originals_;
    std::deque<llvm::Function*> unfinished_;
    llvm::SetVector<std::string, std::vector<std::string>, std::set<std::string>> entries_;
};

}  // namespace

bool is_clone_name(llvm::StringRef name) { return name.starts_with(clone_prefix); }

std::string clone_name_of(llvm::StringRef name)
{
    name.consume_front("\1");  // as it is, says the front end: no prefix of the platform
    if (name.consume_front("_Z")) {
        return (clone_prefix + name).str();
    }
    return (clone_prefix + llvm::Twine(name.size()) + name).str();
}

unsigned make_transactional_clones(llvm::Module& module, const Configuration& configuration) { return Cloner(module, configuration).run(); }

}  // namespace stillpoint::nvhooks

#include "escaping_functions.hpp"

#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"

namespace stillpoint::nvhooks {

namespace {

/// Whether all that uses the constant is data that never runs: attributes, debug information.
bool is_only_metadata(const llvm::Constant& constant)
{
    for (const llvm::User* user : constant.users()) {
        const auto* global = llvm::dyn_cast<llvm::GlobalVariable>(user);
        if (global != nullptr ? global->getSection() != "llvm.metadata"
                              : !llvm::isa<llvm::Constant>(user) || !is_only_metadata(*llvm::cast<llvm::Constant>(user))) {
            return false;
        }
    }
    return true;
}

/// Takes the address, as opposed to calling the function or naming it for the compiler's own use.
bool takes_address(const llvm::Use& use)
{
    const llvm::User* user = use.getUser();
    if (const auto* call = llvm::dyn_cast<llvm::CallBase>(user)) {
        return !call->isCallee(&use);
    }
    if (llvm::isa<llvm::Function>(user) || llvm::isa<llvm::DSOLocalEquivalent>(user) || llvm::isa<llvm::NoCFIValue>(user)) {
        return false;
    }
    const auto* constant = llvm::dyn_cast<llvm::Constant>(user);
    return constant == nullptr || llvm::isa<llvm::GlobalValue>(constant) || !is_only_metadata(*constant);
}

/// A wrapper that is alike in every unit of a program, so the linker keeps one.
llvm::Function* make_wrapper(llvm::Function& function)
{
    llvm::Module& module = *function.getParent();
    const std::string name = ("nvhooks.through_pointer." + function.getName()).str();
    auto* wrapper = llvm::Function::Create(function.getFunctionType(), llvm::GlobalValue::LinkOnceODRLinkage, name, module);
    wrapper->copyAttributesFrom(&function);
    wrapper->setVisibility(llvm::GlobalValue::HiddenVisibility);
    wrapper->setDSOLocal(true);
    wrapper->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::None);
    wrapper->setDLLStorageClass(llvm::GlobalValue::DefaultStorageClass);
    wrapper->setComdat(module.getOrInsertComdat(name));
    wrapper->removeFnAttr(llvm::Attribute::Memory);
    llvm::IRBuilder<> builder(llvm::BasicBlock::Create(module.getContext(), "", wrapper));
    llvm::SmallVector<llvm::Value*, 8> arguments;
    for (llvm::Argument& argument : wrapper->args()) {
        arguments.push_back(&argument);
    }
    llvm::CallInst* call = builder.CreateCall(&function, arguments);
    call->setCallingConv(function.getCallingConv());
    call->setAttributes(function.getAttributes());
    // A call that becomes an intrinsic without a result must not promise to return an argument.
    for (unsigned i = 0; i < call->arg_size(); ++i) {
        call->removeParamAttr(i, llvm::Attribute::Returned);
    }
    if (call->getType()->isVoidTy()) {
        builder.CreateRetVoid();
    } else {
        builder.CreateRet(call);
    }
    return wrapper;
}

}  // namespace

llvm::SmallVector<llvm::Function*, 2> replace_escaping_functions(llvm::Module& module, const Descriptions& descriptions, bool reads)
{
    llvm::SmallVector<llvm::Function*, 8> escaping;
    for (llvm::Function& function : module) {
        const FunctionDescription* description = descriptions.find(function);
        const bool needs_hooks = description != nullptr &&
                                 (description->writes() || description->scanf_format || (reads && description->reads()));
        if (needs_hooks && llvm::any_of(function.uses(), takes_address)) {
            escaping.push_back(&function);
        }
    }
    llvm::SmallVector<llvm::Function*, 2> left;
    for (llvm::Function* function : escaping) {
        // A weak one may be null, and the program may ask.
        if (function->isVarArg() || function->hasExternalWeakLinkage()) {
            left.push_back(function);
            continue;
        }
        llvm::Function* wrapper = make_wrapper(*function);
        function->replaceUsesWithIf(wrapper, [](const llvm::Use& use) { return takes_address(use); });
    }
    return left;
}

}  // namespace stillpoint::nvhooks

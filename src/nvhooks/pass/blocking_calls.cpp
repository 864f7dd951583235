#include "blocking_calls.hpp"

#include <algorithm>

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm_version.hpp"
#include "translate.hpp"

namespace stillpoint::nvhooks {

namespace {

/// As an integer of a pointer's size; 0 where there is none, or it is of another type.
llvm::Value* argument_as_number(llvm::IRBuilder<>& builder, llvm::CallBase& call, unsigned index, llvm::Type* number)
{
    llvm::Value* argument = index < call.arg_size() ? call.getArgOperand(index) : nullptr;
    if (argument != nullptr && argument->getType()->isPointerTy()) {
        return builder.CreatePtrToInt(argument, number);
    }
    if (argument != nullptr && argument->getType()->isIntegerTy()) {
        return builder.CreateSExtOrTrunc(argument, number);
    }
    return llvm::ConstantInt::get(number, 0);
}

}  // namespace

unsigned emit_blocking_calls(FunctionScope& scope)
{
    const Layer& layer = scope.layer();
    if (!layer.has(Hook::blocking_call)) {
        return 0;
    }
    std::vector<llvm::CallBase*> calls;
    for (llvm::Instruction& instruction : llvm::instructions(scope.function)) {
        auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
        const llvm::Function* callee = call != nullptr ? call->getCalledFunction() : nullptr;
        if (callee != nullptr && std::find(layer.blocking.begin(), layer.blocking.end(), callee->getName()) != layer.blocking.end()) {
            calls.push_back(call);
        }
    }
    llvm::Module& module = *scope.function.getParent();
    llvm::Type* number = module.getDataLayout().getIntPtrType(module.getContext());
    for (llvm::CallBase* call : calls) {
        BuilderBefore builder(call, call);
        builder.CreateCall(hook_function(module, Hook::blocking_call),
                           {builder.CreateGlobalString(call->getCalledFunction()->getName()), argument_as_number(builder, *call, 0, number),
                            argument_as_number(builder, *call, 1, number)});
    }
    return static_cast<unsigned>(calls.size());
}

}  // namespace stillpoint::nvhooks

// Expressions of descriptions as IR. A stack machine whose values are pointers or i64.

#include "size_expression.hpp"

#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/Module.h"

namespace stillpoint::nvhooks {

class ExpressionEmitter {
public:
    ExpressionEmitter(llvm::IRBuilder<>& builder, llvm::CallBase& call, llvm::Value* result)
        : builder_(builder), call_(call), result_(result), module_(*call.getModule()), i64_(builder.getInt64Ty()),
          pointer_(builder.getPtrTy())
    {
    }

    llvm::Value* run(const SizeExpression& expression)
    {
        for (const SizeExpression::Step& step : expression.steps_) {
            push_value(step);
        }
        return pop();
    }

    /// As an unsigned number: what is negative as an `int` counts as 0.
    llvm::Value* number(llvm::Value* value)
    {
        if (value->getType()->isPointerTy()) {
            return builder_.CreatePtrToInt(value, i64_);
        }
        if (value->getType() == i64_) {
            return value;
        }
        if (!value->getType()->isIntegerTy() || value->getType()->getIntegerBitWidth() > 64) {
            return llvm::ConstantInt::get(i64_, 0);
        }
        return not_negative(builder_.CreateSExt(value, i64_));
    }

    llvm::Value* pointer(llvm::Value* value) { return value->getType()->isPointerTy() ? value : builder_.CreateIntToPtr(value, pointer_); }

private:
    using Operation = SizeExpression::Operation;

    llvm::Value* pop() { return values_.pop_back_val(); }
    llvm::Value* pop_number() { return number(pop()); }
    llvm::Value* pop_pointer() { return pointer(pop()); }
    llvm::Value* not_negative(llvm::Value* value)
    {
        return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, value, llvm::ConstantInt::get(i64_, 0));
    }
    llvm::Value* as_number(llvm::Value* condition) { return builder_.CreateZExt(condition, i64_); }

    void push_value(const SizeExpression::Step& step)
    {
        switch (step.operation) {
        case Operation::number: values_.push_back(llvm::ConstantInt::get(i64_, step.value)); break;
        case Operation::argument: values_.push_back(call_.getArgOperand(static_cast<unsigned>(step.value))); break;
        case Operation::result: values_.push_back(returned()); break;
        case Operation::failed: values_.push_back(failed()); break;
        case Operation::choose: values_.push_back(choice()); break;
        case Operation::string_length: values_.push_back(library_call("strlen", {readable(pop_pointer())})); break;
        case Operation::wide_string_length: values_.push_back(library_call("wcslen", {readable(pop_pointer())})); break;
        case Operation::load32: values_.push_back(loaded(builder_.getInt32Ty())); break;
        case Operation::load64: values_.push_back(loaded(pointer_)); break;
        case Operation::formatted: values_.push_back(formatted()); break;
        case Operation::formatted_list: values_.push_back(formatted_list()); break;
        default: push_binary(step.operation); break;
        }
    }

    void push_binary(Operation operation)
    {
        llvm::Value* right = pop_number();
        llvm::Value* left = pop();
        if (operation == Operation::add && left->getType()->isPointerTy()) {
            values_.push_back(builder_.CreateGEP(builder_.getInt8Ty(), left, right));
            return;
        }
        if (operation == Operation::bounded_string_length) {
            values_.push_back(library_call("strnlen", {readable(pointer(left)), right}));
            return;
        }
        left = number(left);
        switch (operation) {
        case Operation::add: values_.push_back(builder_.CreateAdd(left, right)); break;
        case Operation::subtract: values_.push_back(builder_.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, left, right)); break;
        case Operation::multiply: values_.push_back(builder_.CreateMul(left, right)); break;
        case Operation::minimum: values_.push_back(builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, left, right)); break;
        case Operation::maximum: values_.push_back(builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, left, right)); break;
        case Operation::equal: values_.push_back(as_number(builder_.CreateICmpEQ(left, right))); break;
        default: values_.push_back(as_number(builder_.CreateICmpULT(left, right))); break;
        }
    }

    llvm::Value* returned()
    {
        if (result_->getType()->isPointerTy()) {
            return result_;
        }
        llvm::Value* value = number(result_);
        return result_->getType() == i64_ ? not_negative(value) : value;
    }

    llvm::Value* failed()
    {
        if (result_->getType()->isPointerTy()) {
            return as_number(builder_.CreateIsNull(result_));
        }
        const bool is_integer = result_->getType()->isIntegerTy();
        return is_integer ? as_number(builder_.CreateIsNeg(result_)) : llvm::ConstantInt::get(i64_, 0);
    }

    llvm::Value* choice()
    {
        llvm::Value* otherwise = pop();
        llvm::Value* chosen = pop();
        llvm::Value* condition = builder_.CreateIsNotNull(pop_number());
        if (!chosen->getType()->isPointerTy() || !otherwise->getType()->isPointerTy()) {
            chosen = number(chosen);
            otherwise = number(otherwise);
        }
        return builder_.CreateSelect(condition, chosen, otherwise);
    }

    /// The address, or where it is null that of a zero: many functions take null for "not wanted".
    llvm::Value* readable(llvm::Value* address)
    {
        constexpr const char* zero_name = "stillpoint.zero";
        llvm::GlobalVariable* zero = module_.getGlobalVariable(zero_name, true);
        if (zero == nullptr) {
            zero = new llvm::GlobalVariable(module_, i64_, true, llvm::GlobalValue::PrivateLinkage, llvm::ConstantInt::get(i64_, 0),
                                            zero_name);
        }
        return builder_.CreateSelect(builder_.CreateIsNull(address), zero, address);
    }

    llvm::Value* loaded(llvm::Type* type) { return builder_.CreateAlignedLoad(type, readable(pop_pointer()), llvm::Align(1)); }

    llvm::Value* library_call(llvm::StringRef name, llvm::ArrayRef<llvm::Value*> operands)
    {
        llvm::SmallVector<llvm::Type*, 2> types;
        for (llvm::Value* operand : operands) {
            types.push_back(operand->getType());
        }
        llvm::FunctionType* type = llvm::FunctionType::get(i64_, types, false);
        llvm::CallInst* made = builder_.CreateCall(module_.getOrInsertFunction(name, type), operands);
        made->setDoesNotThrow();
        return made;
    }

    /// The length that snprintf(NULL, 0, format, ...) returns: for what a printf-like call is about to write.
    llvm::Value* formatted()
    {
        llvm::Value* format = pop_pointer();
        llvm::SmallVector<llvm::Value*, 8> operands{llvm::ConstantPointerNull::get(pointer_), llvm::ConstantInt::get(i64_, 0), format};
        for (unsigned place = call_.getFunctionType()->getNumParams(); place < call_.arg_size(); ++place) {
            operands.push_back(call_.getArgOperand(place));
        }
        llvm::FunctionType* type = llvm::FunctionType::get(builder_.getInt32Ty(), {pointer_, i64_, pointer_}, true);
        llvm::CallInst* made = builder_.CreateCall(module_.getOrInsertFunction("snprintf", type), operands);
        made->setDoesNotThrow();
        return number(made);
    }

    /// A copy of a va_list: the copy is used up, and the callee needs the original.
    llvm::Value* formatted_list()
    {
        constexpr std::uint64_t list_bytes_max = 32;  // aarch64; 24 on x86-64
        llvm::Value* list = pop_pointer();
        llvm::Value* format = pop_pointer();
        llvm::IRBuilder<> entry(&*call_.getFunction()->getEntryBlock().getFirstInsertionPt());
        llvm::AllocaInst* copy = entry.CreateAlloca(llvm::ArrayType::get(builder_.getInt8Ty(), list_bytes_max));
        copy->setAlignment(llvm::Align(16));
        list_intrinsic(llvm::Intrinsic::vacopy, {copy, list});
        llvm::FunctionType* type = llvm::FunctionType::get(builder_.getInt32Ty(), {pointer_, i64_, pointer_, pointer_}, false);
        llvm::Value* const nowhere = llvm::ConstantPointerNull::get(pointer_);
        llvm::Value* const operands[] = {nowhere, llvm::ConstantInt::get(i64_, 0), format, copy};
        llvm::CallInst* made = builder_.CreateCall(module_.getOrInsertFunction("vsnprintf", type), operands);
        made->setDoesNotThrow();
        list_intrinsic(llvm::Intrinsic::vaend, {copy});
        return number(made);
    }

    void list_intrinsic(llvm::Intrinsic::ID id, llvm::ArrayRef<llvm::Value*> operands)
    {
#if LLVM_VERSION_MAJOR >= 19
        builder_.CreateIntrinsic(id, {pointer_}, operands);
#else
        builder_.CreateIntrinsic(id, {}, operands);
#endif
    }

    llvm::IRBuilder<>& builder_;
    llvm::CallBase& call_;
    llvm::Value* result_;
    llvm::Module& module_;
    llvm::Type* i64_;
    llvm::PointerType* pointer_;
    llvm::SmallVector<llvm::Value*, 4> values_;
};

llvm::Value* SizeExpression::emit(llvm::IRBuilder<>& builder, llvm::CallBase& call, llvm::Value* result) const
{
    ExpressionEmitter emitter(builder, call, result);
    return emitter.number(emitter.run(*this));
}

llvm::Value* SizeExpression::emit_pointer(llvm::IRBuilder<>& builder, llvm::CallBase& call, llvm::Value* result) const
{
    ExpressionEmitter emitter(builder, call, result);
    return emitter.pointer(emitter.run(*this));
}

}  // namespace stillpoint::nvhooks

#include "transactional_body.hpp"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm_version.hpp"
#include "translate.hpp"

namespace stillpoint::nvhooks {

namespace {

constexpr std::uint64_t word_bytes = 8;
/// Values of more words go through memory.
constexpr std::uint64_t words_max = 8;

/// Memory of the running call alone: frames of functions that a transaction has called are gone after a rollback, so they are read and
/// written in place [src/itm]. Constants never change.
bool is_own_object(const llvm::Value* object, bool reads)
{
    if (llvm::isa<llvm::AllocaInst>(object) || llvm::isa<llvm::UndefValue>(object) || llvm::isa<llvm::Function>(object)) {
        return true;
    }
    if (const auto* argument = llvm::dyn_cast<llvm::Argument>(object)) {
        return argument->hasByValAttr();
    }
    const auto* global = llvm::dyn_cast<llvm::GlobalVariable>(object);
    return reads && global != nullptr && global->isConstant();
}

bool is_own_memory(const llvm::Value* pointer, bool reads)
{
    if (pointer->getType()->isPointerTy() && pointer->getType()->getPointerAddressSpace() != 0) {
        return true;  // of the processor's own: no durable memory lies there
    }
    llvm::SmallVector<const llvm::Value*, 8> objects;
    llvm::getUnderlyingObjects(pointer, objects, nullptr, /*MaxLookup=*/12);
    return !objects.empty() && llvm::all_of(objects, [reads](const llvm::Value* object) { return is_own_object(object, reads); });
}

class Rewriter {
public:
    Rewriter(llvm::Function& clone, const ClonePlan& plan)
        : function_(clone), module_(*clone.getParent()), layout_(module_.getDataLayout()), plan_(plan)
    {
    }

    unsigned rewrite()
    {
        llvm::SmallVector<llvm::Instruction*, 64> instructions;
        for (llvm::Instruction& instruction : llvm::instructions(function_)) {
            if (instruction.mayReadOrWriteMemory() || llvm::isa<llvm::CallBase>(instruction)) {
                instructions.push_back(&instruction);
            }
        }
        for (llvm::Instruction* instruction : instructions) {
            visit(*instruction);
        }
        return replaced_;
    }

private:
    void visit(llvm::Instruction& instruction)
    {
        if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
            visit_load(*load);
        } else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
            visit_store(*store);
        } else if (const llvm::Value* updated = updated_place(instruction)) {
            if (!is_own_memory(updated, false)) {
                become_irrevocable(instruction, "an atomic access that writes");
            }
        } else if (const auto* fence = llvm::dyn_cast<llvm::FenceInst>(&instruction)) {
            if (fence->getSyncScopeID() != llvm::SyncScope::SingleThread) {
                become_irrevocable(instruction, "a fence");
            }
        } else if (auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction)) {
            visit_intrinsic(*intrinsic);
        } else if (auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction)) {
            visit_call(*call);
        }
    }

    static const llvm::Value* updated_place(const llvm::Instruction& instruction)
    {
        if (const auto* update = llvm::dyn_cast<llvm::AtomicRMWInst>(&instruction)) {
            return update->getPointerOperand();
        }
        const auto* exchange = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&instruction);
        return exchange != nullptr ? exchange->getPointerOperand() : nullptr;
    }

    // -- Loads and stores ------------------------------------------------------------------------

    void visit_load(llvm::LoadInst& load)
    {
        if (is_own_memory(load.getPointerOperand(), true)) {
            return;
        }
        if (load.isVolatile() || layout_.getTypeStoreSize(load.getType()).isScalable()) {
            become_irrevocable(load, load.isVolatile() ? "a volatile access" : "an access of scalable vectors");
            return;
        }
        // An atomic load is an ordinary one: all that a transaction reads is as of one moment.
        BuilderBefore builder(&load, &load);
        llvm::Value* value = read(builder, load.getType(), load.getPointerOperand());
        load.replaceAllUsesWith(value);
        value->takeName(&load);
        load.eraseFromParent();
        ++replaced_;
    }

    void visit_store(llvm::StoreInst& store)
    {
        if (is_own_memory(store.getPointerOperand(), false)) {
            return;
        }
        llvm::Value* value = store.getValueOperand();
        if (store.isVolatile() || store.isAtomic() || layout_.getTypeStoreSize(value->getType()).isScalable()) {
            become_irrevocable(store, store.isAtomic()     ? "an atomic access that writes"
                                      : store.isVolatile() ? "a volatile access"
                                                           : "an access of scalable vectors");
            return;
        }
        BuilderBefore builder(&store, &store);
        write(builder, value, store.getPointerOperand());
        store.eraseFromParent();
        ++replaced_;
    }

    /// The integer of 1, 2, 4 or 8 bytes with the value's bits; null: there is none.
    [[nodiscard]] llvm::IntegerType* scalar_of(llvm::Type* type) const
    {
        if (!type->isPointerTy() && !type->isIntegerTy() && !type->isFloatingPointTy()) {
            return nullptr;
        }
        const std::uint64_t bits = layout_.getTypeSizeInBits(type).getFixedValue();
        const bool fits = bits == 8 || bits == 16 || bits == 32 || bits == 64;
        return fits ? llvm::IntegerType::get(module_.getContext(), static_cast<unsigned>(bits)) : nullptr;
    }

    /// The vector of words with the value's bits; null: there is none.
    [[nodiscard]] llvm::FixedVectorType* words_of(llvm::Type* type) const
    {
        const bool is_vector = type->isVectorTy() && !type->getScalarType()->isPointerTy();
        if (!is_vector && !type->isIntegerTy(128) && !type->isFP128Ty()) {
            return nullptr;
        }
        const std::uint64_t bits = layout_.getTypeSizeInBits(type).getFixedValue();
        const std::uint64_t words = bits / (8 * word_bytes);
        const bool fits = bits % (8 * word_bytes) == 0 && words != 0 && words <= words_max;
        return fits ? llvm::FixedVectorType::get(llvm::Type::getInt64Ty(module_.getContext()), static_cast<unsigned>(words)) : nullptr;
    }

    static llvm::Value* word_at(llvm::IRBuilder<>& builder, llvm::Value* pointer, unsigned number)
    {
        return number == 0 ? pointer : builder.CreateGEP(builder.getInt8Ty(), pointer, builder.getInt64(number * word_bytes));
    }

    llvm::Value* read(llvm::IRBuilder<>& builder, llvm::Type* type, llvm::Value* pointer)
    {
        if (llvm::IntegerType* scalar = scalar_of(type)) {
            llvm::Value* bits = builder.CreateCall(access_function("_ITM_RU", scalar, true), {pointer});
            return type->isPointerTy() ? builder.CreateIntToPtr(bits, type) : builder.CreateBitCast(bits, type);
        }
        if (llvm::FixedVectorType* words = words_of(type)) {
            llvm::Value* bits = llvm::PoisonValue::get(words);
            for (unsigned i = 0; i < words->getNumElements(); ++i) {
                llvm::Value* word = builder.CreateCall(access_function("_ITM_RU", builder.getInt64Ty(), true),
                                                       {word_at(builder, pointer, i)});
                bits = builder.CreateInsertElement(bits, word, std::uint64_t{i});
            }
            return builder.CreateBitCast(bits, type);
        }
        llvm::AllocaInst* copy = copy_of(type);
        builder.CreateCall(copy_function("_ITM_memcpyRtWn"), {copy, pointer, size_of(builder, type)});
        return builder.CreateLoad(type, copy);
    }

    void write(llvm::IRBuilder<>& builder, llvm::Value* value, llvm::Value* pointer)
    {
        llvm::Type* type = value->getType();
        if (llvm::IntegerType* scalar = scalar_of(type)) {
            llvm::Value* bits = type->isPointerTy() ? builder.CreatePtrToInt(value, scalar) : builder.CreateBitCast(value, scalar);
            builder.CreateCall(access_function("_ITM_WU", scalar, false), {pointer, bits});
            return;
        }
        if (llvm::FixedVectorType* words = words_of(type)) {
            llvm::Value* bits = builder.CreateBitCast(value, words);
            for (unsigned i = 0; i < words->getNumElements(); ++i) {
                llvm::Value* word = builder.CreateExtractElement(bits, std::uint64_t{i});
                builder.CreateCall(access_function("_ITM_WU", builder.getInt64Ty(), false), {word_at(builder, pointer, i), word});
            }
            return;
        }
        llvm::AllocaInst* copy = copy_of(type);
        builder.CreateStore(value, copy);
        builder.CreateCall(copy_function("_ITM_memcpyRnWt"), {pointer, copy, size_of(builder, type)});
    }

    /// Memory in the frame for a value that passes through it.
    llvm::AllocaInst* copy_of(llvm::Type* type)
    {
        llvm::AllocaInst*& copy = copies_[type];
        if (copy == nullptr) {
            llvm::BasicBlock& entry = function_.getEntryBlock();
            copy = llvm::IRBuilder<>(&entry, entry.begin()).CreateAlloca(type);
        }
        return copy;
    }

    [[nodiscard]] llvm::Value* size_of(llvm::IRBuilder<>& builder, llvm::Type* type) const
    {
        return builder.getInt64(layout_.getTypeStoreSize(type).getFixedValue());
    }

    // -- Intrinsics ------------------------------------------------------------------------------

    void visit_intrinsic(llvm::IntrinsicInst& call)
    {
        if (auto* memory = llvm::dyn_cast<llvm::MemIntrinsic>(&call)) {
            visit_memory(*memory);
            return;
        }
        switch (call.getIntrinsicID()) {
        case llvm::Intrinsic::memcpy_element_unordered_atomic:
        case llvm::Intrinsic::memmove_element_unordered_atomic:
        case llvm::Intrinsic::memset_element_unordered_atomic: become_irrevocable(call, "an atomic copy"); return;
        case llvm::Intrinsic::masked_load: read_lanes(call, call.getArgOperand(0), call.getArgOperand(2), call.getArgOperand(3)); return;
        case llvm::Intrinsic::masked_gather: read_lanes(call, call.getArgOperand(0), call.getArgOperand(2), call.getArgOperand(3)); return;
        case llvm::Intrinsic::masked_store:
        case llvm::Intrinsic::masked_scatter: write_lanes(call, call.getArgOperand(1), call.getArgOperand(3)); return;
        case llvm::Intrinsic::masked_expandload:
        case llvm::Intrinsic::masked_compressstore: become_irrevocable(call, "a masked vector access"); return;
        default: break;
        }
        const bool touches_memory = llvm::any_of(call.args(), [](const llvm::Value* argument) {
            return argument->getType()->isPtrOrPtrVectorTy() && !(argument->getType()->isPointerTy() && is_own_memory(argument, false));
        });
        const bool is_known = !llvm::Function::isTargetIntrinsic(call.getIntrinsicID()) && !llvm::isa<llvm::VPIntrinsic>(call);
        if (!is_known && call.mayReadOrWriteMemory() && touches_memory) {
            become_irrevocable(call, "an access by an instruction of one processor");
        }
    }

    /// Lanes of a vector in memory: their number and size; 0: none that can be copied one by one.
    struct Lanes {
        unsigned count = 0;
        std::uint64_t bytes = 0;
    };
    [[nodiscard]] Lanes lanes_of(llvm::Type* type, const llvm::Value* pointers) const
    {
        auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
        const bool is_own = pointers->getType()->isPointerTy() && is_own_memory(pointers, false);
        const std::uint64_t bits = vector != nullptr ? layout_.getTypeSizeInBits(vector->getElementType()).getFixedValue() : 0;
        return vector == nullptr || is_own || bits % 8 != 0 ? Lanes{} : Lanes{vector->getNumElements(), bits / 8};
    }

    /// Calls copy(memory, lane in `values`, bytes) for each lane; a lane that the mask leaves out has no bytes.
    template <class Copy>
    static void for_each_lane(llvm::IRBuilder<>& builder, const Lanes& lanes, llvm::Value* pointers, llvm::Value* mask, llvm::Value* values,
                              Copy&& copy)
    {
        for (unsigned i = 0; i < lanes.count; ++i) {
            llvm::Value* offset = builder.getInt64(i * lanes.bytes);
            llvm::Value* memory = pointers->getType()->isVectorTy() ? builder.CreateExtractElement(pointers, std::uint64_t{i})
                                                                    : builder.CreateGEP(builder.getInt8Ty(), pointers, offset);
            llvm::Value* bytes = builder.CreateSelect(builder.CreateExtractElement(mask, std::uint64_t{i}), builder.getInt64(lanes.bytes),
                                                      builder.getInt64(0));
            copy(memory, builder.CreateGEP(builder.getInt8Ty(), values, offset), bytes);
        }
    }

    void read_lanes(llvm::IntrinsicInst& call, llvm::Value* pointers, llvm::Value* mask, llvm::Value* otherwise)
    {
        const Lanes lanes = lanes_of(call.getType(), pointers);
        if (lanes.count == 0) {
            become_irrevocable_unless_own(call, pointers);
            return;
        }
        BuilderBefore builder(&call, &call);
        llvm::AllocaInst* values = copy_of(call.getType());
        builder.CreateStore(otherwise, values);
        for_each_lane(builder, lanes, pointers, mask, values, [&](llvm::Value* memory, llvm::Value* lane, llvm::Value* bytes) {
            builder.CreateCall(copy_function("_ITM_memcpyRtWn"), {lane, memory, bytes});
        });
        call.replaceAllUsesWith(builder.CreateLoad(call.getType(), values));
        call.eraseFromParent();
        ++replaced_;
    }

    void write_lanes(llvm::IntrinsicInst& call, llvm::Value* pointers, llvm::Value* mask)
    {
        llvm::Value* value = call.getArgOperand(0);
        const Lanes lanes = lanes_of(value->getType(), pointers);
        if (lanes.count == 0) {
            become_irrevocable_unless_own(call, pointers);
            return;
        }
        BuilderBefore builder(&call, &call);
        llvm::AllocaInst* values = copy_of(value->getType());
        builder.CreateStore(value, values);
        for_each_lane(builder, lanes, pointers, mask, values, [&](llvm::Value* memory, llvm::Value* lane, llvm::Value* bytes) {
            builder.CreateCall(copy_function("_ITM_memcpyRnWt"), {memory, lane, bytes});
        });
        call.eraseFromParent();
        ++replaced_;
    }

    void become_irrevocable_unless_own(llvm::IntrinsicInst& call, const llvm::Value* pointers)
    {
        if (!pointers->getType()->isPointerTy() || !is_own_memory(pointers, false)) {
            become_irrevocable(call, "a masked vector access");
        }
    }

    void visit_memory(llvm::MemIntrinsic& call)
    {
        const bool writes_own = is_own_memory(call.getRawDest(), false);
        auto* transfer = llvm::dyn_cast<llvm::MemTransferInst>(&call);
        const bool reads_own = transfer == nullptr || is_own_memory(transfer->getRawSource(), true);
        if (writes_own && reads_own) {
            return;
        }
        if (call.isVolatile()) {
            become_irrevocable(call, "a volatile access");
            return;
        }
        BuilderBefore builder(&call, &call);
        llvm::Value* bytes = builder.CreateZExtOrTrunc(call.getLength(), builder.getInt64Ty());
        if (transfer != nullptr) {
            const std::string name = std::string(llvm::isa<llvm::MemMoveInst>(call) ? "_ITM_memmove" : "_ITM_memcpy") + (reads_own ? "RnWt"
                                                                                                                         : writes_own
                                                                                                                             ? "RtWn"
                                                                                                                             : "RtWt");
            builder.CreateCall(copy_function(name), {call.getRawDest(), transfer->getRawSource(), bytes});
        } else {
            llvm::Value* value = builder.CreateZExt(llvm::cast<llvm::MemSetInst>(call).getValue(), builder.getInt32Ty());
            builder.CreateCall(
                declared("_ITM_memsetW", builder.getVoidTy(), {builder.getPtrTy(), builder.getInt32Ty(), builder.getInt64Ty()}),
                {call.getRawDest(), value, bytes});
        }
        call.eraseFromParent();
        ++replaced_;
    }

    // -- Calls -----------------------------------------------------------------------------------

    void visit_call(llvm::CallBase& call)
    {
        if (const auto* assembly = llvm::dyn_cast<llvm::InlineAsm>(call.getCalledOperand())) {
            if (!llvm::StringRef(assembly->getAsmString()).trim().empty()) {
                become_irrevocable(call, "inline assembly");
            }
            return;
        }
        copy_arguments(call);
        if (call.doesNotAccessMemory()) {
            return;
        }
        auto* callee = llvm::dyn_cast<llvm::Function>(call.getCalledOperand()->stripPointerCastsAndAliases());
        BuilderBefore builder(&call, &call);
        if (callee == nullptr) {
            llvm::FunctionCallee find = declared("_ITM_getTMCloneOrIrrevocable", builder.getPtrTy(), {builder.getPtrTy()});
            retarget(call, builder.CreateCall(find, {call.getCalledOperand()}));
            return;
        }
        const CalleeChoice choice = plan_.choose(call, *callee);
        switch (choice.kind) {
        case CalleeChoice::Kind::as_it_is: copy_result(call); return;
        case CalleeChoice::Kind::clone: retarget(call, choice.clone); return;
        case CalleeChoice::Kind::clone_or_irrevocable: {
            if (!call.doesNotReturn()) {
                plan_.note_irrevocable(call, callee, "");
            }
            llvm::FunctionCallee find = declared("sp_tm_clone_or_irrevocable", builder.getPtrTy(),
                                                 {builder.getPtrTy(), builder.getPtrTy()});
            retarget(call, builder.CreateCall(find, {choice.clone, call.getCalledOperand()}));
            return;
        }
        }
    }

    /// The code of a call copies what is passed by value, in place: it gets a copy that was read by the engine.
    void copy_arguments(llvm::CallBase& call)
    {
        for (unsigned i = 0; i < call.arg_size(); ++i) {
            llvm::Value* argument = call.getArgOperand(i);
            if (!call.isByValArgument(i) || is_own_memory(argument, true)) {
                continue;
            }
            BuilderBefore builder(&call, &call);
            llvm::AllocaInst* copy = aligned_copy(call.getParamByValType(i), call.getParamAlign(i));
            builder.CreateCall(copy_function("_ITM_memcpyRtWn"), {copy, argument, size_of(builder, call.getParamByValType(i))});
            call.setArgOperand(i, copy);
            ++replaced_;
        }
    }

    /// A function without a clone stores its result in place, if it returns a structure.
    void copy_result(llvm::CallBase& call)
    {
        if (!call.hasStructRetAttr() || is_own_memory(call.getArgOperand(0), false)) {
            return;
        }
        if (!llvm::isa<llvm::CallInst>(call)) {
            become_irrevocable(call, "a structure that a function returns, and that may throw,");
            return;
        }
        llvm::Value* result = call.getArgOperand(0);
        llvm::Type* type = call.getParamStructRetType(0);
        llvm::AllocaInst* copy = aligned_copy(type, call.getParamAlign(0));
        call.setArgOperand(0, copy);
        llvm::cast<llvm::CallInst>(call).setTailCallKind(llvm::CallInst::TCK_None);
        BuilderBefore builder(call.getNextNode(), &call);
        builder.CreateCall(copy_function("_ITM_memcpyRnWt"), {result, copy, size_of(builder, type)});
        ++replaced_;
    }

    /// Memory in the frame for this one call.
    llvm::AllocaInst* aligned_copy(llvm::Type* type, llvm::MaybeAlign alignment)
    {
        llvm::BasicBlock& entry = function_.getEntryBlock();
        llvm::AllocaInst* copy = llvm::IRBuilder<>(&entry, entry.begin()).CreateAlloca(type);
        copy->setAlignment(std::max(copy->getAlign(), alignment.valueOrOne()));
        return copy;
    }

    void retarget(llvm::CallBase& call, llvm::Value* target)
    {
        call.setCalledOperand(target);
        call.removeFnAttr(llvm::Attribute::Memory);
        call.removeFnAttr(llvm::Attribute::NoSync);
        call.removeFnAttr(llvm::Attribute::NoFree);
        call.removeFnAttr(llvm::Attribute::Builtin);
        call.addFnAttr(llvm::Attribute::NoBuiltin);
        call.setMetadata(llvm::LLVMContext::MD_callees, nullptr);
        ++replaced_;
    }

    void become_irrevocable(llvm::Instruction& before, llvm::StringRef reason)
    {
        plan_.note_irrevocable(before, nullptr, reason);
        BuilderBefore builder(&before, &before);
        constexpr unsigned serial_irrevocable = 0;
        builder.CreateCall(declared("_ITM_changeTransactionMode", builder.getVoidTy(), {builder.getInt32Ty()}),
                           {builder.getInt32(serial_irrevocable)});
        ++replaced_;
    }

    // -- Functions of the ABI ----------------------------------------------------------------------

    llvm::FunctionCallee declared(llvm::StringRef name, llvm::Type* result, llvm::ArrayRef<llvm::Type*> parameters)
    {
        llvm::FunctionCallee callee = module_.getOrInsertFunction(name, llvm::FunctionType::get(result, parameters, false));
        if (auto* function = llvm::dyn_cast<llvm::Function>(callee.getCallee())) {
            function->addFnAttr(llvm::Attribute::NoUnwind);
        }
        return callee;
    }

    llvm::FunctionCallee access_function(llvm::StringRef prefix, llvm::IntegerType* scalar, bool reads)
    {
        llvm::LLVMContext& context = module_.getContext();
        llvm::Type* pointer = llvm::PointerType::getUnqual(context);
        const std::string name = (prefix + llvm::Twine(scalar->getBitWidth() / 8)).str();
        if (reads) {
            return declared(name, scalar, {pointer});
        }
        llvm::FunctionCallee callee = declared(name, llvm::Type::getVoidTy(context), {pointer, scalar});
        if (auto* function = llvm::dyn_cast<llvm::Function>(callee.getCallee()); function != nullptr && scalar->getBitWidth() < 32) {
            function->addParamAttr(1, llvm::Attribute::ZExt);  // C's promise to callees, as Clang makes it
        }
        return callee;
    }

    llvm::FunctionCallee copy_function(llvm::StringRef name)
    {
        llvm::LLVMContext& context = module_.getContext();
        llvm::Type* pointer = llvm::PointerType::getUnqual(context);
        return declared(name, llvm::Type::getVoidTy(context), {pointer, pointer, llvm::Type::getInt64Ty(context)});
    }

    llvm::Function& function_;
    llvm::Module& module_;
    const llvm::DataLayout& layout_;
    const ClonePlan& plan_;
    llvm::DenseMap<llvm::Type*, llvm::AllocaInst*> copies_;
    unsigned replaced_ = 0;
};

}  // namespace

unsigned rewrite_as_transactional(llvm::Function& clone, const ClonePlan& plan) { return Rewriter(clone, plan).rewrite(); }

}  // namespace stillpoint::nvhooks

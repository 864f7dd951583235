// The initial pass: which instructions may read or write durable memory, and how many bytes [NVHooks §4.1.1].

#include "hoisted.hpp"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm_version.hpp"
#include "scope.hpp"

namespace stillpoint::nvhooks {

namespace {

/// The bytes of one access, before it is known which hooks it gets.
struct Bytes {
    std::uint64_t size = 0;
    llvm::Value* dynamic_size = nullptr;
    llvm::Value* condition = nullptr;
};

class Collector {
public:
    Collector(FunctionScope& scope, Sites& sites, std::vector<PointerUse>& uses) : scope_(scope), sites_(sites), uses_(uses) {}

    void collect()
    {
        // Collected first: lanes of masked accesses add instructions, and invokes split edges.
        std::vector<llvm::Instruction*> instructions;
        for (llvm::Instruction& instruction : llvm::instructions(scope_.function)) {
            if (instruction.mayReadOrWriteMemory() && scope_.dominators.isReachableFromEntry(instruction.getParent())) {
                instructions.push_back(&instruction);
            }
        }
        for (llvm::Instruction* instruction : instructions) {
            visit(*instruction);
        }
    }

    void collect_plain()
    {
        for (llvm::Instruction& instruction : llvm::instructions(scope_.function)) {
            if (is_plain(instruction) && scope_.dominators.isReachableFromEntry(instruction.getParent())) {
                visit(instruction);
            }
        }
    }

private:
    /// A constant number of bytes, for certain.
    [[nodiscard]] bool is_plain(llvm::Instruction& instruction) const
    {
        if (const auto* memory = llvm::dyn_cast<llvm::AnyMemIntrinsic>(&instruction)) {
            return llvm::isa<llvm::ConstantInt>(memory->getLength());
        }
        return (llvm::isa<llvm::LoadInst>(instruction) || llvm::isa<llvm::StoreInst>(instruction)) &&
               !scope_.layout().getTypeStoreSize(llvm::getLoadStoreType(&instruction)).isScalable();
    }

    void visit(llvm::Instruction& instruction)
    {
        if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
            access(instruction, load->getPointerOperandIndex(), bytes_of(load->getType(), instruction), true, false);
        } else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
            llvm::Value* value = store->getValueOperand();
            if (access(instruction, store->getPointerOperandIndex(), bytes_of(value->getType(), instruction), false, true)) {
                pointers_in(*store, value);
            }
        } else if (auto* update = llvm::dyn_cast<llvm::AtomicRMWInst>(&instruction)) {
            access(instruction, update->getPointerOperandIndex(), bytes_of(update->getType(), instruction), true, true);
        } else if (auto* exchange = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&instruction)) {
            access(instruction, exchange->getPointerOperandIndex(), bytes_of(exchange->getNewValOperand()->getType(), instruction), true,
                   true);
        } else if (auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction)) {
            visit_intrinsic(*intrinsic);
        } else if (auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction)) {
            visit_call(*call);
        }
    }

    void visit_intrinsic(llvm::IntrinsicInst& call)
    {
        if (auto* memory = llvm::dyn_cast<llvm::AnyMemIntrinsic>(&call)) {
            const Bytes bytes = bytes_of_length(memory->getLength(), call);
            if (llvm::isa<llvm::AnyMemTransferInst>(call)) {
                access(call, 1, bytes, true, false);
            }
            access(call, 0, bytes, false, true);
            return;
        }
        switch (call.getIntrinsicID()) {
        case llvm::Intrinsic::masked_load: lanes(call, 0, call.getArgOperand(2), call.getType(), true); return;
        case llvm::Intrinsic::masked_store: lanes(call, 1, call.getArgOperand(3), call.getArgOperand(0)->getType(), false); return;
        case llvm::Intrinsic::masked_gather: lanes(call, 0, call.getArgOperand(2), call.getType(), true); return;
        case llvm::Intrinsic::masked_scatter: lanes(call, 1, call.getArgOperand(3), call.getArgOperand(0)->getType(), false); return;
        default: return;
        }
    }

    void visit_call(llvm::CallBase& call)
    {
        for (unsigned i = 0; i < call.arg_size(); ++i) {
            if (call.isByValArgument(i)) {  // The call copies it.
                access(call, i, bytes_of(call.getParamByValType(i), call), true, false);
            } else if (llvm::Type* operand = call.isInlineAsm() ? call.getParamElementType(i) : nullptr) {
                access(call, i, bytes_of(operand, call), true, true);  // "=m" and "+m" look alike here
            }
        }
        const FunctionDescription* description = scope_.configuration.descriptions.find(call);
        if (description == nullptr) {
            return;
        }
        for (unsigned i = 0; description->takes_addresses && i < call.arg_size(); ++i) {
            llvm::Value* argument = call.getArgOperand(i);
            if (argument->getType()->isPointerTy() && !call.isByValArgument(i) && !is_provably_volatile(argument, scope_)) {
                note_use(call, i);
            }
        }
        for (const MemoryEffect& effect : description->effects) {
            if (effect.pointer_argument >= call.arg_size() || !call.getArgOperand(effect.pointer_argument)->getType()->isPointerTy() ||
                (!effect.indirect && is_provably_volatile(call.getArgOperand(effect.pointer_argument), scope_))) {
                continue;
            }
            if (!description->takes_addresses) {
                note_use(call, effect.pointer_argument);
            }
            if (auto* plain = llvm::dyn_cast<llvm::CallInst>(&call); plain != nullptr && plain->isMustTailCall()) {
                plain->setTailCallKind(llvm::CallInst::TCK_None);  // a hook follows
            }
            effect_of_call(call, effect);
        }
    }

    void effect_of_call(llvm::CallBase& call, const MemoryEffect& effect)
    {
        Site site;
        site.pointer = call.getArgOperand(effect.pointer_argument);
        site.call = &call;
        site.effect = &effect;
        const bool is_simple = effect.at_argument() && !effect.size.uses_result() && !effect.size.reads_memory();
        if (is_simple) {
            llvm::IRBuilder<> builder(&call);
            const Bytes bytes = bytes_of_length(effect.size.emit(builder, call, nullptr), call);
            site.size = bytes.size;
            site.dynamic_size = bytes.dynamic_size;
            if (bytes.size == 0 && bytes.dynamic_size == nullptr) {
                return;  // nothing is written
            }
        }
        const bool before = scope_.layer().has(effect.writes ? Hook::pre_nvm_write : Hook::pre_nvm_read);
        if (before) {
            add(site, effect.writes ? SiteKind::pre_write : SiteKind::pre_read, call, false);
        }
        if (scope_.layer().has(effect.writes ? Hook::post_nvm_write : Hook::post_nvm_read)) {
            add_after(site, effect.writes ? SiteKind::post_write : SiteKind::post_read, call);
        }
    }

    /// Each lane of a masked access is an access of its own, where its bit of the mask is set.
    void lanes(llvm::CallBase& call, unsigned operand, llvm::Value* mask, llvm::Type* type, bool reads)
    {
        auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
        llvm::Value* pointers = call.getArgOperand(operand);
        const bool scattered = pointers->getType()->isVectorTy();
        if (vector == nullptr || (!scattered && is_provably_volatile(pointers, scope_))) {
            return;
        }
        note_use(call, operand);
        const std::uint64_t size = scope_.layout().getTypeStoreSize(vector->getElementType()).getFixedValue();
        llvm::IRBuilder<> builder(&call);
        for (unsigned lane = 0; lane < vector->getNumElements(); ++lane) {
            llvm::Value* condition = builder.CreateExtractElement(mask, lane);
            if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(condition)) {
                if (constant->isZero()) {
                    continue;
                }
                condition = nullptr;
            }
            Site site;
            site.pointer = scattered ? builder.CreateExtractElement(pointers, lane) : pointers;
            site.offset = scattered ? 0 : static_cast<std::int64_t>(lane * size);
            site.size = size;
            site.condition = condition;
            add_hooks(site, call, reads, !reads);
        }
    }

    /// False: the access cannot be to durable memory.
    bool access(llvm::Instruction& instruction, unsigned operand, const Bytes& bytes, bool reads, bool writes)
    {
        llvm::Value* pointer = instruction.getOperand(operand);
        if (pointer->getType()->getPointerAddressSpace() != 0 || is_provably_volatile(pointer, scope_)) {
            return false;
        }
        note_use(instruction, operand);
        if (bytes.size == 0 && bytes.dynamic_size == nullptr) {
            return true;
        }
        Site site;
        site.pointer = pointer;
        site.size = bytes.size;
        site.dynamic_size = bytes.dynamic_size;
        add_hooks(site, instruction, reads, writes);
        return true;
    }

    void add_hooks(const Site& site, llvm::Instruction& instruction, bool reads, bool writes)
    {
        const Layer& layer = scope_.layer();
        if (reads && layer.has(Hook::pre_nvm_read)) {
            add(site, SiteKind::pre_read, instruction, false);
        }
        if (writes && layer.has(Hook::pre_nvm_write)) {
            add(site, SiteKind::pre_write, instruction, false);
        }
        if (reads && layer.has(Hook::post_nvm_read)) {
            add_after(site, SiteKind::post_read, instruction);
        }
        if (writes && layer.has(Hook::post_nvm_write)) {
            add_after(site, SiteKind::post_write, instruction);
        }
    }

    void pointers_in(llvm::StoreInst& store, llvm::Value* value)
    {
        if (!scope_.layer().has(Hook::pointer_stored) || !value->getType()->isPtrOrPtrVectorTy()) {
            return;
        }
        Site site;
        site.pointer = store.getPointerOperand();
        site.size = scope_.layout().getPointerSize();
        auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
        llvm::IRBuilder<> builder(&store);
        for (unsigned lane = 0; lane < (vector != nullptr ? vector->getNumElements() : 1); ++lane) {
            site.stored_pointer = vector != nullptr ? builder.CreateExtractElement(value, lane) : value;
            site.offset = static_cast<std::int64_t>(lane * site.size);
            if (!llvm::isa<llvm::ConstantPointerNull>(site.stored_pointer)) {
                add(site, SiteKind::pointer_stored, store, true);
            }
        }
    }

    void add(Site site, SiteKind kind, llvm::Instruction& anchor, bool after)
    {
        site.kind = kind;
        site.anchor = &anchor;
        site.after = after;
        site.accesses.push_back(&anchor);
        if (!is_hoisted(anchor, kind)) {
            sites_.push_back(std::move(site));
        }
    }

    /// Behind an invoke is the beginning of its normal successor, which it must not share with others.
    void add_after(const Site& site, SiteKind kind, llvm::Instruction& instruction)
    {
        auto* invoke = llvm::dyn_cast<llvm::InvokeInst>(&instruction);
        if (invoke == nullptr) {
            add(site, kind, instruction, true);
            return;
        }
        llvm::BasicBlock* next = invoke->getNormalDest();
        if (next->getSinglePredecessor() == nullptr) {
            next = llvm::SplitEdge(invoke->getParent(), next, &scope_.dominators, &scope_.loops);
        }
        add(site, kind, *next->getFirstInsertionPt(), false);
    }

    void note_use(llvm::Instruction& instruction, unsigned operand)
    {
        if (!scope_.layer().has(Hook::to_absolute_ptr)) {
            return;
        }
        // A function may read and write what one argument points to; it is translated once.
        for (std::size_t i = uses_.size(); i-- > 0 && uses_[i].instruction == &instruction;) {
            if (uses_[i].operand == operand) {
                return;
            }
        }
        uses_.push_back({&instruction, operand});
    }

    [[nodiscard]] Bytes bytes_of(llvm::Type* type, llvm::Instruction& before) const
    {
        const llvm::TypeSize size = scope_.layout().getTypeStoreSize(type);
        if (!size.isScalable()) {
            return {size.getFixedValue()};
        }
        llvm::IRBuilder<> builder(&before);
        return {0, emit_size(builder, size)};
    }

    [[nodiscard]] static Bytes bytes_of_length(llvm::Value* length, llvm::Instruction& before)
    {
        if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(length)) {
            return {constant->getZExtValue()};
        }
        llvm::IRBuilder<> builder(&before);
        return {0, builder.CreateZExtOrTrunc(length, builder.getInt64Ty())};
    }

    FunctionScope& scope_;
    Sites& sites_;
    std::vector<PointerUse>& uses_;
};

}  // namespace

void collect_sites(FunctionScope& scope, Sites& sites, std::vector<PointerUse>& uses) { Collector(scope, sites, uses).collect(); }

void collect_plain_sites(FunctionScope& scope, Sites& sites)
{
    std::vector<PointerUse> none;
    Collector(scope, sites, none).collect_plain();
}

}  // namespace stillpoint::nvhooks

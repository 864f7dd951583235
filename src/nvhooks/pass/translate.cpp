#include "translate.hpp"

#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm_version.hpp"

namespace stillpoint::nvhooks {

BuilderBefore::BuilderBefore(llvm::Instruction* at, const llvm::Instruction* like) : llvm::IRBuilder<>(at)
{
    if (like->getDebugLoc()) {
        SetCurrentDebugLocation(like->getDebugLoc());
    } else if (llvm::DISubprogram* program = at->getFunction()->getSubprogram()) {
        SetCurrentDebugLocation(llvm::DILocation::get(at->getContext(), 0, 0, program));
    }
}

llvm::Instruction* split_if(llvm::Value* condition, llvm::Instruction* at, bool unlikely, llvm::DomTreeUpdater& updater,
                            llvm::LoopInfo& loops)
{
    llvm::MDNode* weights = unlikely ? llvm::MDBuilder(at->getContext()).createBranchWeights(1, 4000) : nullptr;
    return llvm::SplitBlockAndInsertIfThen(condition, at, /*Unreachable=*/false, weights, &updater, &loops);
}

llvm::PHINode* joined(llvm::Value* value, llvm::Value* otherwise, llvm::Instruction* then, llvm::Instruction* at, llvm::StringRef name)
{
    llvm::IRBuilder<> builder(&*at->getParent()->begin());
    llvm::PHINode* merged = builder.CreatePHI(value->getType(), 2, name);
    for (llvm::BasicBlock* before : llvm::predecessors(at->getParent())) {
        merged->addIncoming(before == then->getParent() ? value : otherwise, before);
    }
    return merged;
}

llvm::FunctionCallee hook_function(llvm::Module& module, Hook hook)
{
    llvm::LLVMContext& context = module.getContext();
    llvm::Type* pointer = llvm::PointerType::getUnqual(context);
    llvm::Type* size = module.getDataLayout().getIntPtrType(context);
    llvm::Type* nothing = llvm::Type::getVoidTy(context);
    llvm::AttrBuilder attributes(context);
    attributes.addAttribute(llvm::Attribute::NoUnwind);
    attributes.addAttribute(llvm::Attribute::WillReturn);
    if (hook == Hook::is_nvm || hook == Hook::to_absolute_ptr) {
        attributes.addMemoryAttr(llvm::MemoryEffects::none());
    }
    const llvm::AttributeList list = llvm::AttributeList::get(context, llvm::AttributeList::FunctionIndex, attributes);
    const auto declare = [&](llvm::StringRef name, llvm::Type* result, llvm::ArrayRef<llvm::Type*> parameters) {
        return module.getOrInsertFunction(name, llvm::FunctionType::get(result, parameters, false), list);
    };
    switch (hook) {
    case Hook::is_nvm: {
        // C's bool: one byte, zero-extended.
        llvm::FunctionCallee callee = declare("nvhooks_is_nvm", llvm::Type::getInt1Ty(context), {pointer});
        llvm::cast<llvm::Function>(callee.getCallee())->addRetAttr(llvm::Attribute::ZExt);
        return callee;
    }
    case Hook::to_absolute_ptr: return declare("nvhooks_to_absolute_ptr", pointer, {size});
    case Hook::pre_nvm_read: return declare("nvhooks_pre_nvm_read", nothing, {pointer, size});
    case Hook::post_nvm_read: return declare("nvhooks_post_nvm_read", nothing, {pointer, size});
    case Hook::pre_nvm_write: return declare("nvhooks_pre_nvm_write", nothing, {pointer, size});
    case Hook::pre_nvm_write_gathered: return declare("nvhooks_pre_nvm_write_gathered", nothing, {pointer, size});
    case Hook::writes_gathered: return declare("nvhooks_writes_gathered", nothing, {});
    case Hook::post_nvm_write: return declare("nvhooks_post_nvm_write", nothing, {pointer, size});
    case Hook::pointer_stored: return declare("nvhooks_pointer_stored", nothing, {pointer, pointer});
    case Hook::blocking_call: return declare("nvhooks_blocking_call", nothing, {pointer, size, size});
    }
    llvm_unreachable("every hook is declared");
}

llvm::Value* emit_is_durable(llvm::IRBuilder<>& builder, llvm::Value* pointer, const Layer& layer)
{
    if (layer.checks_in_line()) {
        llvm::Value* bits = builder.CreateLShr(builder.CreatePtrToInt(pointer, builder.getInt64Ty()), layer.window->shift);
        return builder.CreateICmpEQ(bits, builder.getInt64(layer.window->index), "durable");
    }
    if (!layer.has(Hook::is_nvm)) {
        return nullptr;
    }
    llvm::Module& module = *builder.GetInsertBlock()->getModule();
    return builder.CreateCall(hook_function(module, Hook::is_nvm), {pointer}, "durable");
}

llvm::Value* Translator::root_of(llvm::Value* pointer)
{
    const Optimizations& optimizations = scope_.layer().optimizations;
    if (!optimizations.coalesce_fields && !optimizations.coalesce_loops && !optimizations.no_extra_tracking) {
        return pointer;
    }
    if (const auto known = roots_.find(pointer); known != roots_.end()) {
        return known->second;
    }
    llvm::Value* root = llvm::getUnderlyingObject(pointer, 0);
    if (optimizations.coalesce_loops && scope_.evolution.isSCEVable(pointer->getType())) {
        const llvm::SCEV* base = scope_.evolution.getPointerBase(scope_.evolution.getSCEV(pointer));
        if (const auto* value = llvm::dyn_cast<llvm::SCEVUnknown>(base)) {
            root = value->getValue();
        }
    }
    roots_[pointer] = root;
    return root;
}

llvm::Instruction* Translator::outside_loops(llvm::Value* root, llvm::Instruction* at) const
{
    if (!scope_.layer().optimizations.coalesce_loops) {
        return at;
    }
    for (llvm::Loop* loop = scope_.loops.getLoopFor(at->getParent());
         loop != nullptr && loop->isLoopInvariant(root) && loop->getLoopPreheader() != nullptr;
         loop = scope_.loops.getLoopFor(at->getParent())) {
        at = loop->getLoopPreheader()->getTerminator();
    }
    return at;
}

void Translator::plan_use(llvm::Value* pointer, llvm::Instruction* at) { uses_of_root_[root_of(pointer)].push_back(at); }

void Translator::plan(const Sites& sites, const std::vector<PointerUse>& uses)
{
    for (const Site& site : sites) {
        if (!site.removed) {
            plan_use(site.pointer, site.anchor);
        }
    }
    for (const PointerUse& use : uses) {
        llvm::Value* pointer = use.instruction->getOperand(use.operand);
        if (pointer->getType()->isPointerTy()) {
            plan_use(pointer, use.instruction);
        }
    }
    const Optimizations& optimizations = scope_.layer().optimizations;
    for (auto& [root, places] : uses_of_root_) {
        llvm::DenseMap<llvm::BasicBlock*, llvm::Instruction*> first_in_block;
        llvm::BasicBlock* above_all = places.front()->getParent();
        for (llvm::Instruction* place : places) {
            llvm::Instruction*& first = first_in_block[place->getParent()];
            first = first == nullptr || place->comesBefore(first) ? place : first;
            above_all = scope_.dominators.findNearestCommonDominator(above_all, place->getParent());
        }
        llvm::Instruction* top = first_in_block.count(above_all) != 0 ? first_in_block[above_all] : above_all->getTerminator();
        for (llvm::Instruction* place : places) {
            llvm::Instruction* at = place;
            if (optimizations.no_extra_tracking) {
                at = top;
            } else if (optimizations.coalesce_fields) {
                at = first_in_block[place->getParent()];
            }
            places_[{root, place}] = outside_loops(root, at);
        }
    }
}

Translation Translator::write(llvm::Value* root, llvm::Instruction* at)
{
    BuilderBefore builder(at, at);
    llvm::Type* integer = builder.getInt64Ty();
    llvm::Value* durable = emit_is_durable(builder, root, scope_.layer());
    llvm::Instruction* then = split_if(durable, at, false, updater_, scope_.loops);
    BuilderBefore inside(then, at);
    llvm::Value* relative = inside.CreatePtrToInt(root, integer);
    llvm::Value* absolute = inside.CreateCall(hook_function(*at->getModule(), Hook::to_absolute_ptr), {relative});
    llvm::Value* distance = inside.CreateSub(inside.CreatePtrToInt(absolute, integer), relative);
    llvm::PHINode* merged = joined(distance, inside.getInt64(0), then, at, "absolute.distance");
    BuilderBefore behind(at, at);
    return {durable, merged, behind.CreateGEP(behind.getInt8Ty(), root, merged, "absolute.root")};
}

Translation Translator::translation_of(llvm::Value* pointer, llvm::Instruction* at)
{
    llvm::Value* root = root_of(pointer);
    const auto planned = places_.find({root, at});
    llvm::Instruction* place = planned != places_.end() ? planned->second : at;
    checks_outside_loops_ = checks_outside_loops_ || place->getParent() != at->getParent();
    const auto known = written_.find({root, place});
    if (known != written_.end()) {
        return known->second;
    }
    const Translation translation = write(root, place);
    written_[{root, place}] = translation;
    return translation;
}

llvm::Value* Translator::is_durable_outside_loops(llvm::Value* pointer, llvm::Instruction* at)
{
    llvm::Value* root = root_of(pointer);
    llvm::Instruction* place = outside_loops(root, at);
    if (place == at || llvm::isa<llvm::Constant>(root)) {
        return nullptr;
    }
    llvm::Value*& checked = checked_[{root, place}];
    if (checked == nullptr) {
        BuilderBefore builder(place, place);
        checked = emit_is_durable(builder, root, scope_.layer());
    }
    checks_outside_loops_ = true;
    return checked;
}

namespace {

/// `pointer`, which a few steps lead to from `root`, by the same steps from `absolute`: the CPU's addressing modes take them, where an
/// added distance would cost an instruction for each access. Null where the steps are others or too many.
llvm::Value* derived_from(llvm::Value* absolute, llvm::Value* pointer, const llvm::Value* root, llvm::Instruction* at)
{
    constexpr std::size_t steps_max = 3;
    llvm::SmallVector<llvm::GetElementPtrInst*, steps_max> steps;
    while (pointer != root) {
        auto* step = llvm::dyn_cast<llvm::GetElementPtrInst>(pointer);
        if (step == nullptr || step->getType()->isVectorTy() || steps.size() == steps_max) {
            return nullptr;
        }
        steps.push_back(step);
        pointer = step->getPointerOperand();
    }
    for (llvm::GetElementPtrInst* step : llvm::reverse(steps)) {
        llvm::Instruction* copy = step->clone();
        copy->setOperand(0, absolute);
        copy->insertBefore(at);
        absolute = copy;
    }
    return absolute;
}

}  // namespace

void Translator::rewrite(const PointerUse& use)
{
    llvm::Instruction* instruction = use.instruction;
    llvm::Value* pointer = instruction->getOperand(use.operand);
    const auto moved = [this, instruction](llvm::Value* one) {
        const Translation translation = translation_of(one, instruction);
        if (llvm::Value* derived = derived_from(translation.absolute, one, root_of(one), instruction)) {
            return derived;
        }
        BuilderBefore builder(instruction, instruction);
        return builder.CreateGEP(builder.getInt8Ty(), one, translation.distance, "absolute");
    };
    if (pointer->getType()->isPointerTy()) {
        instruction->setOperand(use.operand, moved(pointer));
        return;
    }
    auto* vector = llvm::cast<llvm::FixedVectorType>(pointer->getType());
    llvm::Value* result = pointer;
    for (unsigned lane = 0; lane < vector->getNumElements(); ++lane) {
        llvm::Value* one = BuilderBefore(instruction, instruction).CreateExtractElement(pointer, lane);
        llvm::Value* absolute = moved(one);
        result = BuilderBefore(instruction, instruction).CreateInsertElement(result, absolute, lane);
    }
    instruction->setOperand(use.operand, result);
}

}  // namespace stillpoint::nvhooks

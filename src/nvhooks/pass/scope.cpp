#include "scope.hpp"

#include "library_bodies.hpp"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

namespace stillpoint::nvhooks {

namespace {

bool keeps_fase(const llvm::CallBase& call, const Configuration& configuration)
{
    if (call.isInlineAsm()) {
        return !call.mayWriteToMemory();
    }
    if (const llvm::Function* callee = call.getCalledFunction()) {
        if (callee->getName().starts_with("nvhooks_") || callee->getName().starts_with(body_prefix)) {
            return true;  // a hook of the early pass; a body of the plugin
        }
        if (configuration.keeps_fase.contains(callee->getName()) || configuration.is_allocator(call)) {
            return true;
        }
    }
    if (const FunctionDescription* description = configuration.descriptions.find(call)) {
        return description->keeps_fase && call.doesNotThrow();
    }
    const bool comes_back = call.doesNotThrow() && call.hasFnAttr(llvm::Attribute::WillReturn);
    if (llvm::isa<llvm::IntrinsicInst>(call)) {
        return comes_back;
    }
    // A release is a store that others see: what does not synchronise, or does not write, is none.
    return comes_back && (call.hasFnAttr(llvm::Attribute::NoSync) || call.onlyReadsMemory() || call.onlyAccessesInaccessibleMemory());
}

bool is_volatile_object(const llvm::Value* object, const FunctionScope& scope)
{
    if (llvm::isa<llvm::AllocaInst>(object) || llvm::isa<llvm::Function>(object) || llvm::isa<llvm::UndefValue>(object)) {
        return true;
    }
    if (const auto* global = llvm::dyn_cast<llvm::GlobalVariable>(object)) {
        return global->isConstant() || scope.layer().window.has_value();
    }
    if (const auto* argument = llvm::dyn_cast<llvm::Argument>(object)) {
        return argument->hasByValAttr();
    }
    const auto* call = llvm::dyn_cast<llvm::CallBase>(object);
    if (call == nullptr || call->getCalledFunction() == nullptr) {
        return false;
    }
    if (call->getIntrinsicID() == llvm::Intrinsic::threadlocal_address) {
        return true;
    }
    if (scope.configuration.is_allocator(*call)) {
        return false;
    }
    // Not operator new: programs replace it, by one that gives durable memory too.
    llvm::LibFunc function;
    if (!scope.library.getLibFunc(*call, function)) {
        return false;
    }
    switch (function) {
    case llvm::LibFunc_malloc:
    case llvm::LibFunc_calloc:
    case llvm::LibFunc_realloc:
    case llvm::LibFunc_aligned_alloc:
    case llvm::LibFunc_memalign:
    case llvm::LibFunc_valloc:
    case llvm::LibFunc_strdup:
    case llvm::LibFunc_strndup: return true;
    default: return false;
    }
}

}  // namespace

bool is_boundary(const llvm::Instruction& instruction, const Configuration& configuration)
{
    if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction)) {
        return !keeps_fase(*call, configuration);
    }
    if (configuration.marks_cards()) {
        return false;
    }
    if (const auto* fence = llvm::dyn_cast<llvm::FenceInst>(&instruction)) {
        return fence->getSyncScopeID() != llvm::SyncScope::SingleThread;
    }
    if (!instruction.isAtomic()) {
        return false;
    }
    const auto is_strong = [](llvm::AtomicOrdering ordering) { return llvm::isStrongerThanMonotonic(ordering); };
    if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
        return is_strong(load->getOrdering());
    }
    if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
        return is_strong(store->getOrdering());
    }
    if (const auto* update = llvm::dyn_cast<llvm::AtomicRMWInst>(&instruction)) {
        return is_strong(update->getOrdering());
    }
    if (const auto* exchange = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&instruction)) {
        return is_strong(exchange->getSuccessOrdering());
    }
    return false;
}

bool is_provably_volatile(const llvm::Value* pointer, const FunctionScope& scope)
{
    llvm::SmallVector<const llvm::Value*, 8> objects;
    llvm::getUnderlyingObjects(pointer, objects, nullptr, /*MaxLookup=*/12);
    // Null among others is a path not taken; null alone may be the base of an address that the program computes.
    bool any = false;
    for (const llvm::Value* object : objects) {
        if (llvm::isa<llvm::ConstantPointerNull>(object)) {
            continue;
        }
        if (!is_volatile_object(object, scope)) {
            return false;
        }
        any = true;
    }
    return any;
}

Place place_of(const Site& site, const llvm::DataLayout& layout)
{
    llvm::APInt bytes(layout.getIndexTypeSizeInBits(site.pointer->getType()), 0);
    const llvm::Value* base = site.pointer->stripAndAccumulateConstantOffsets(layout, bytes, /*AllowNonInbounds=*/true);
    return {base, bytes.getSExtValue() + site.offset};
}

}  // namespace stillpoint::nvhooks

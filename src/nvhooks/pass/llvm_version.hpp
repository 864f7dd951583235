#pragma once
// Where LLVM 16 and 19 differ in what the pass uses.

#include "llvm/Analysis/DomTreeUpdater.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/Support/ModRef.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#if LLVM_VERSION_MAJOR >= 17
#include "llvm/IR/AttributeMask.h"
#else
#include "llvm/IR/Attributes.h"
#endif

namespace stillpoint::nvhooks {

/// The size as an i64, also where it is a multiple of the machine's vector length.
inline llvm::Value* emit_size(llvm::IRBuilder<>& builder, llvm::TypeSize size)
{
#if LLVM_VERSION_MAJOR >= 17
    return builder.CreateTypeSize(builder.getInt64Ty(), size);
#else
    return builder.CreateVScale(builder.getInt64(size.getKnownMinValue()));
#endif
}

/// Splits the block before `at` into one that runs if `condition` holds and one that runs otherwise.
inline void split_if_else(llvm::Value* condition, llvm::Instruction* at, llvm::Instruction** then, llvm::Instruction** otherwise,
                          llvm::DomTreeUpdater& updater, llvm::LoopInfo& loops)
{
#if LLVM_VERSION_MAJOR >= 17
    llvm::SplitBlockAndInsertIfThenElse(condition, at, then, otherwise, nullptr, &updater, &loops);
#else
    static_cast<void>(loops);  // then without the new blocks: less is hoisted
    llvm::SplitBlockAndInsertIfThenElse(condition, at, then, otherwise, nullptr, &updater);
#endif
}

}  // namespace stillpoint::nvhooks

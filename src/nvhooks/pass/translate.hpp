#pragma once
// Relative pointers made absolute, where a layer wants it (to_absolute_ptr [NVHooks Table 4.1]).

#include <map>

#include "llvm/Analysis/DomTreeUpdater.h"
#include "scope.hpp"

namespace stillpoint::nvhooks {

/// The facts that are known of a pointer's root at one place.
struct Translation {
    llvm::Value* is_durable;  ///< i1
    llvm::Value* distance;    ///< i64: absolute address - relative pointer; 0 for other pointers
    llvm::Value* absolute;    ///< the root itself, moved
};

/// An object's first pointer is translated, and what is derived from it moved by the same distance. How often that is done
/// depends on the optimisations: at each access; once in a block (coalesce-fields); before loops that
/// do not change the pointer (coalesce-loops); once for all accesses (no-extra-tracking).
class Translator {
public:
    Translator(FunctionScope& scope, llvm::DomTreeUpdater& updater) : scope_(scope), updater_(updater) {}

    /// Chooses where translations will stand. Called before any block is split.
    void plan(const Sites& sites, const std::vector<PointerUse>& uses);

    /// The translation that holds for `pointer` before `at`; written on first use.
    [[nodiscard]] Translation translation_of(llvm::Value* pointer, llvm::Instruction* at);
    /// i1: whether `pointer` is durable, told before the loops around `at` that do not change its object; null where there is none.
    /// Relies on what the paper assumes of arrays: an object lies wholly inside the window or wholly outside.
    [[nodiscard]] llvm::Value* is_durable_outside_loops(llvm::Value* pointer, llvm::Instruction* at);
    [[nodiscard]] bool checked_outside_loops() const { return checks_outside_loops_; }
    /// Replaces the operand by the absolute pointer (or vector of pointers).
    void rewrite(const PointerUse& use);

private:
    [[nodiscard]] llvm::Value* root_of(llvm::Value* pointer);
    [[nodiscard]] llvm::Instruction* outside_loops(llvm::Value* root, llvm::Instruction* at) const;
    void plan_use(llvm::Value* pointer, llvm::Instruction* at);
    [[nodiscard]] Translation write(llvm::Value* root, llvm::Instruction* at);

    FunctionScope& scope_;
    llvm::DomTreeUpdater& updater_;
    std::map<llvm::Value*, llvm::Value*> roots_;
    std::map<llvm::Value*, std::vector<llvm::Instruction*>> uses_of_root_;
    /// The place of a root's translation, by root and place of use.
    std::map<std::pair<llvm::Value*, llvm::Instruction*>, llvm::Instruction*> places_;
    std::map<std::pair<llvm::Value*, llvm::Instruction*>, Translation> written_;
    std::map<std::pair<llvm::Value*, llvm::Instruction*>, llvm::Value*> checked_;
    bool checks_outside_loops_ = false;
};

/// i1: whether the pointer is durable; null where the layer has no means to tell.
[[nodiscard]] llvm::Value* emit_is_durable(llvm::IRBuilder<>& builder, llvm::Value* pointer, const Layer& layer);

/// A builder before `at` whose instructions have a source location, as calls need in functions with debug information.
class BuilderBefore : public llvm::IRBuilder<> {
public:
    BuilderBefore(llvm::Instruction* at, const llvm::Instruction* like);
};

/// Splits the block before `at`: the returned instruction ends a block that runs only if `condition` holds.
[[nodiscard]] llvm::Instruction* split_if(llvm::Value* condition, llvm::Instruction* at, bool unlikely, llvm::DomTreeUpdater& updater,
                                          llvm::LoopInfo& loops);

/// In the block that begins with `at`: `value` where control came through the block that `then` ends, otherwise `otherwise`.
[[nodiscard]] llvm::PHINode* joined(llvm::Value* value, llvm::Value* otherwise, llvm::Instruction* then, llvm::Instruction* at,
                                    llvm::StringRef name);

/// The declaration of a hook.
[[nodiscard]] llvm::FunctionCallee hook_function(llvm::Module& module, Hook hook);

}  // namespace stillpoint::nvhooks

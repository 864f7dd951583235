#pragma once
// A store right after a loop, and next to what the loop wrote, joins the loop's hook: the element that an insertion into an
// array fills after a loop has moved the others. A step of coalesce-loops.

#include "llvm/Analysis/PostDominators.h"
#include "scope.hpp"

namespace stillpoint::nvhooks {

/// For hooks before the access only. The access must follow for certain, with nothing between that ends a FASE, once control is in the
/// block after the loop's exit or in the one after that. That block may have other predecessors, where a test skips the loop: on
/// those paths the access keeps a hook of its own.
class Neighbours {
public:
    Neighbours(FunctionScope& scope, const llvm::PostDominatorTree& post_dominators, Sites& sites, llvm::Loop& loop, SiteKind kind)
        : scope_(scope), post_dominators_(post_dominators), sites_(sites), loop_(loop), kind_(kind)
    {
    }

    /// Extends [lowest, lowest + size), known before the loop, by what lies at its ends. The accesses go to `of_loop`; hooks for
    /// other paths are appended to `others`.
    void absorb(const llvm::SCEV*& lowest, const llvm::SCEV*& size, Site& of_loop, Sites& others);

private:
    /// A block that follows the loop, and the one that leads there from the loop.
    struct LoopExit {
        llvm::BasicBlock* block;
        llvm::BasicBlock* from;
    };
    [[nodiscard]] llvm::SmallVector<LoopExit, 2> following_blocks() const;
    [[nodiscard]] bool is_certain(const Site& site, const llvm::BasicBlock& from) const;
    /// Whether control passes the instructions in front of `end` (null: all) for certain, and inside one FASE.
    [[nodiscard]] bool passes(const llvm::BasicBlock& block, const llvm::Instruction* end) const;
    /// First byte of the access, as it is where control comes from `from`.
    [[nodiscard]] const llvm::SCEV* start_from(const Site& site, llvm::BasicBlock& block, llvm::BasicBlock& from) const;
    [[nodiscard]] bool join(const llvm::SCEV* start, std::uint64_t bytes, const llvm::SCEV*& lowest, const llvm::SCEV*& size) const;
    [[nodiscard]] bool cover_other_paths(const Site& site, const LoopExit& following, Sites& others);

    FunctionScope& scope_;
    const llvm::PostDominatorTree& post_dominators_;
    Sites& sites_;
    llvm::Loop& loop_;
    SiteKind kind_;
};

}  // namespace stillpoint::nvhooks

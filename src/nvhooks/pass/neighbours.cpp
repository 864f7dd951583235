#include "neighbours.hpp"

#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/CFG.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

namespace stillpoint::nvhooks {

llvm::SmallVector<Neighbours::LoopExit, 2> Neighbours::following_blocks() const
{
    llvm::SmallVector<LoopExit, 2> blocks;
    llvm::BasicBlock* exit = loop_.getUniqueExitBlock();
    blocks.push_back({exit, loop_.getExitingBlock()});
    if (!passes(*exit, nullptr)) {
        return blocks;
    }
    llvm::BasicBlock* next = exit->getSingleSuccessor();
    if (next != nullptr && scope_.loops.getLoopFor(next) == loop_.getParentLoop() && !scope_.loops.isLoopHeader(next) && !next->isEHPad()) {
        blocks.push_back({next, exit});
    }
    return blocks;
}

bool Neighbours::passes(const llvm::BasicBlock& block, const llvm::Instruction* end) const
{
    for (const llvm::Instruction& instruction : block) {
        if (&instruction == end) {
            return true;
        }
        if (is_boundary(instruction, scope_.configuration) || !llvm::isGuaranteedToTransferExecutionToSuccessor(&instruction)) {
            return false;
        }
    }
    return true;
}

bool Neighbours::is_certain(const Site& site, const llvm::BasicBlock& from) const
{
    constexpr std::size_t blocks_max = 32;
    const llvm::BasicBlock* target = site.anchor->getParent();
    if (target == &from) {
        return passes(from, site.anchor);
    }
    if (post_dominators_.getNode(target) == nullptr || post_dominators_.getNode(&from) == nullptr ||
        !post_dominators_.dominates(target, &from) || !scope_.dominators.dominates(&from, target) ||
        scope_.loops.getLoopFor(target) != loop_.getParentLoop()) {
        return false;
    }
    llvm::SmallPtrSet<const llvm::BasicBlock*, 16> seen;
    llvm::SmallVector<const llvm::BasicBlock*, 16> waiting{&from};
    while (!waiting.empty()) {
        const llvm::BasicBlock* block = waiting.pop_back_val();
        if (block == target || !seen.insert(block).second) {
            continue;
        }
        if (seen.size() > blocks_max || !passes(*block, nullptr)) {
            return false;
        }
        waiting.append(llvm::succ_begin(block), llvm::succ_end(block));
    }
    return passes(*target, site.anchor);
}

const llvm::SCEV* Neighbours::start_from(const Site& site, llvm::BasicBlock& block, llvm::BasicBlock& from) const
{
    llvm::ScalarEvolution& evolution = scope_.evolution;
    llvm::ValueToSCEVMapTy incoming;
    for (llvm::PHINode& phi : block.phis()) {
        llvm::Value* value = phi.getIncomingValueForBlock(&from);
        if (evolution.isSCEVable(value->getType())) {
            incoming[&phi] = evolution.getSCEV(value);
        }
    }
    const llvm::SCEV* start = evolution.getSCEV(site.pointer);
    if (!incoming.empty()) {
        start = llvm::SCEVParameterRewriter::rewrite(start, evolution, incoming);
    }
    return evolution.getAddExpr(
        start, evolution.getConstant(evolution.getEffectiveSCEVType(start->getType()), static_cast<std::uint64_t>(site.offset), true));
}

bool Neighbours::join(const llvm::SCEV* start, std::uint64_t bytes, const llvm::SCEV*& lowest, const llvm::SCEV*& size) const
{
    llvm::ScalarEvolution& evolution = scope_.evolution;
    if (evolution.getPointerBase(start) != evolution.getPointerBase(lowest)) {
        return false;
    }
    const llvm::SCEV* length = evolution.getConstant(size->getType(), bytes);
    const llvm::SCEV* from_lowest = evolution.getMinusSCEV(start, lowest);
    if (llvm::isa<llvm::SCEVCouldNotCompute>(from_lowest) || from_lowest->getType() != size->getType()) {
        return false;
    }
    if (evolution.getAddExpr(from_lowest, length)->isZero()) {
        lowest = start;
        size = evolution.getAddExpr(size, length);
        return true;
    }
    if (evolution.getMinusSCEV(from_lowest, size)->isZero()) {
        size = evolution.getAddExpr(size, length);
        return true;
    }
    return false;
}

bool Neighbours::cover_other_paths(const Site& site, const LoopExit& following, Sites& others)
{
    struct Path {
        llvm::Instruction* end;
        const llvm::SCEV* start;
    };
    llvm::SCEVExpander expander(scope_.evolution, scope_.layout(), "nvhooks");
    llvm::SmallVector<Path, 2> paths;
    for (llvm::BasicBlock* from : llvm::predecessors(following.block)) {
        if (from == following.from) {
            continue;
        }
        const llvm::SCEV* start = start_from(site, *following.block, *from);
        // One edge for each, so that a hook can stand on it.
        if (!scope_.evolution.dominates(start, from) || !expander.isSafeToExpandAt(start, from->getTerminator()) ||
            llvm::isa<llvm::IndirectBrInst>(from->getTerminator()) || !llvm::isa<llvm::BranchInst>(from->getTerminator())) {
            return false;
        }
        paths.push_back({from->getTerminator(), start});
    }
    for (const Path& path : paths) {
        llvm::Instruction* end = path.end;
        if (end->getNumSuccessors() != 1) {
            if (end->getSuccessor(0) == end->getSuccessor(1)) {
                return false;
            }
            end = llvm::SplitEdge(end->getParent(), following.block, &scope_.dominators, &scope_.loops)->getTerminator();
        }
        Site copy;
        copy.kind = kind_;
        copy.anchor = end;
        copy.pointer = expander.expandCodeFor(path.start, site.pointer->getType(), end);
        copy.size = site.size;
        copy.accesses = site.accesses;
        copy.hoisted = true;
        others.push_back(copy);
    }
    return true;
}

void Neighbours::absorb(const llvm::SCEV*& lowest, const llvm::SCEV*& size, Site& of_loop, Sites& others)
{
    const llvm::BasicBlock* before = loop_.getLoopPreheader();
    for (const LoopExit& following : following_blocks()) {
        for (Site& site : sites_) {
            if (site.removed || site.hoisted || site.kind != kind_ || !site.is_plain() || !is_certain(site, *following.block)) {
                continue;
            }
            const llvm::SCEV* start = start_from(site, *following.block, *following.from);
            const llvm::SCEV* new_lowest = lowest;
            const llvm::SCEV* new_size = size;
            if (!scope_.evolution.dominates(start, before) || !join(start, site.size, new_lowest, new_size) ||
                !cover_other_paths(site, following, others)) {
                continue;
            }
            lowest = new_lowest;
            size = new_size;
            site.removed = true;
            of_loop.accesses.append(site.accesses);
        }
    }
}

}  // namespace stillpoint::nvhooks

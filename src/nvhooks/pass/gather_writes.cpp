// gather-writes: hooks before writes that follow each other in a block move up to the first of them, as far as what they are told is
// known there. A runtime that makes old bytes durable then waits once for all of them, in nvhooks_writes_gathered().
//
// Not in [NVHooks]: its hooks wait each for itself.

#include <algorithm>

#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/MemoryLocation.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "scope.hpp"

namespace stillpoint::nvhooks {

namespace {

/// Instructions that compute an address or a size from others, at most; longer computations stay where they are.
constexpr unsigned moved_max = 24;
/// Instructions that a load may pass, at most.
constexpr unsigned passed_max = 64;

class WriteGatherer {
public:
    WriteGatherer(FunctionScope& scope, llvm::AAResults& aliases) : scope_(scope), aliases_(aliases) {}

    void gather(Sites& sites)
    {
        llvm::DenseMap<const llvm::Instruction*, llvm::SmallVector<Site*, 1>> by_anchor;
        for (Site& site : sites) {
            if (!site.removed && site.kind == SiteKind::pre_write && !site.after) {
                by_anchor[site.anchor].push_back(&site);
            }
        }
        for (llvm::BasicBlock& block : scope_.function) {
            Site* first = nullptr;
            // Collected first: instructions move.
            llvm::SmallVector<llvm::Instruction*, 32> instructions;
            for (llvm::Instruction& instruction : block) {
                instructions.push_back(&instruction);
            }
            for (llvm::Instruction* instruction : instructions) {
                if (const auto found = by_anchor.find(instruction); found != by_anchor.end()) {
                    for (Site* site : found->second) {
                        first = join(first, *site);
                    }
                }
                if (is_boundary(*instruction, scope_.configuration) || !llvm::isGuaranteedToTransferExecutionToSuccessor(instruction)) {
                    first = nullptr;
                }
            }
        }
    }

private:
    /// The site joins the group that `first` has begun, or stays alone. Returns what the next site may join.
    Site* join(Site* first, Site& site)
    {
        const bool tells_all = site.effect == nullptr || site.size != 0 || site.dynamic_size != nullptr;
        if (!tells_all || site.condition != nullptr) {
            return first;
        }
        if (first == nullptr || !bring_before(site, *first->anchor)) {
            return &site;
        }
        first->gathered_at = first->anchor;
        site.gathered_at = first->anchor;
        return first;
    }

    /// The address and the size that the hook is told become known before `place`. False: it cannot.
    bool bring_before(const Site& site, llvm::Instruction& place)
    {
        llvm::SmallSetVector<llvm::Instruction*, 16> moved;
        if (!is_known_before(site.pointer, place, moved) ||
            (site.dynamic_size != nullptr && !is_known_before(site.dynamic_size, place, moved))) {
            return false;
        }
        for (llvm::Instruction* instruction : moved) {
            instruction->moveBefore(&place);
        }
        return true;
    }

    /// Appends the instructions that have to move, operands first.
    bool is_known_before(llvm::Value* value, llvm::Instruction& place, llvm::SmallSetVector<llvm::Instruction*, 16>& moved)
    {
        auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
        if (instruction == nullptr || moved.contains(instruction)) {
            return true;
        }
        if (instruction->getParent() != place.getParent() || instruction->comesBefore(&place)) {
            return scope_.dominators.dominates(instruction, &place);
        }
        if (instruction == &place || llvm::isa<llvm::PHINode>(instruction) ||
            (instruction->mayReadOrWriteMemory() ? !loads_the_same_before(*instruction, place)
                                                 : !llvm::isSafeToSpeculativelyExecute(instruction))) {
            return false;
        }
        for (llvm::Value* operand : instruction->operands()) {
            if (!is_known_before(operand, place, moved)) {
                return false;
            }
        }
        moved.insert(instruction);
        return moved.size() <= moved_max;
    }

    /// A load that nothing from `place` on changes. It is executed in any case: control leaves the block after it only.
    bool loads_the_same_before(llvm::Instruction& instruction, llvm::Instruction& place)
    {
        auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
        if (load == nullptr || !load->isSimple()) {
            return false;
        }
        const llvm::MemoryLocation loaded = llvm::MemoryLocation::get(load);
        unsigned passed = 0;
        for (llvm::Instruction* at = &place; at != load; at = at->getNextNode()) {
            if (++passed > passed_max ||
                (at->mayWriteToMemory() && !writes_after(*at, *load) && llvm::isModSet(aliases_.getModRefInfo(at, loaded)))) {
                return false;
            }
        }
        return true;
    }

    /// The instruction is a memset, memcpy or memmove, whose bytes all lie after those that are loaded, as their addresses tell: the
    /// elements of an array after their number.
    [[nodiscard]] bool writes_after(llvm::Instruction& instruction, llvm::LoadInst& load) const
    {
        const auto* memory = llvm::dyn_cast<llvm::MemIntrinsic>(&instruction);
        if (memory == nullptr || memory->isVolatile()) {
            return false;
        }
        llvm::ScalarEvolution& evolution = scope_.evolution;
        const llvm::SCEV* from = evolution.getSCEV(load.getPointerOperand());
        const llvm::SCEV* to = evolution.getSCEV(memory->getDest());
        if (evolution.getPointerBase(from) != evolution.getPointerBase(to)) {
            return false;
        }
        const llvm::SCEV* distance = evolution.getMinusSCEV(to, from);
        const llvm::TypeSize bytes = scope_.layout().getTypeStoreSize(load.getType());
        return !llvm::isa<llvm::SCEVCouldNotCompute>(distance) && !bytes.isScalable() &&
               evolution.getSignedRangeMin(distance).sge(static_cast<std::int64_t>(bytes.getFixedValue()));
    }

    FunctionScope& scope_;
    llvm::AAResults& aliases_;
};

}  // namespace

void gather_writes(FunctionScope& scope, llvm::AAResults& aliases, Sites& sites) { WriteGatherer(scope, aliases).gather(sites); }

}  // namespace stillpoint::nvhooks

// coalesce-loops [NVHooks §4.2.3]: hooks of accesses that walk through an array become one hook before the loop, or after it.
//
// The paper distributes the loop into three. Here the range is computed by scalar evolution, which gives the same hooks. A location
// that is not written is never hooked: the accesses of one iteration must together cover the stride without a hole, happen in
// every iteration, and the loop must have one exit and nothing in it that ends a FASE or leaves otherwise. With
// cards a hole smaller than a card is none.

#include <algorithm>
#include <optional>

#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"
#include "neighbours.hpp"
#include "scope.hpp"

namespace stillpoint::nvhooks {

namespace {

/// Accesses of one iteration with the same stride, whose distances are known.
struct Group {
    SiteKind kind;
    bool once_more;  ///< executed once more than the back edge is taken
    std::int64_t step;
    const llvm::SCEV* first;  ///< start of the first access that was found
    struct Member {
        Site* site;
        std::int64_t distance;  ///< bytes from `first`
    };
    llvm::SmallVector<Member, 8> members;
};

class LoopCoalescer {
public:
    LoopCoalescer(FunctionScope& scope, const llvm::PostDominatorTree& post_dominators, Sites& sites, llvm::Loop& loop)
        : scope_(scope), post_dominators_(post_dominators), sites_(sites), loop_(loop),
          expander_(scope.evolution, scope.layout(), "nvhooks")
    {
    }

    void coalesce()
    {
        if (!has_the_shape()) {
            return;
        }
        std::vector<Group> groups = find_groups();
        Sites hoisted;
        for (Group& group : groups) {
            for (llvm::SmallVector<Group::Member, 8>& run : runs_of(group)) {
                hoist(group, run, hoisted);
            }
        }
        sites_.insert(sites_.end(), hoisted.begin(), hoisted.end());
    }

private:
    [[nodiscard]] bool has_the_shape()
    {
        exiting_ = loop_.getExitingBlock();
        exit_ = loop_.getUniqueExitBlock();
        if (!loop_.isLoopSimplifyForm() || exiting_ == nullptr || exit_ == nullptr || exit_->isEHPad() ||
            exit_->getFirstInsertionPt() == exit_->end()) {
            return false;
        }
        taken_ = scope_.evolution.getBackedgeTakenCount(&loop_);
        if (llvm::isa<llvm::SCEVCouldNotCompute>(taken_) || scope_.evolution.getTypeSizeInBits(taken_->getType()) > 64) {
            return false;
        }
        llvm::Instruction* at = loop_.getLoopPreheader()->getTerminator();
        if (!expander_.isSafeToExpandAt(taken_, at) || expander_.isHighCostExpansion({taken_}, &loop_, 16, &scope_.costs, at)) {
            return false;
        }
        for (const llvm::BasicBlock* block : loop_.blocks()) {
            for (const llvm::Instruction& instruction : *block) {
                if (is_boundary(instruction, scope_.configuration) ||
                    (!instruction.isTerminator() && !llvm::isGuaranteedToTransferExecutionToSuccessor(&instruction) &&
                     !llvm::isa<llvm::CallBase>(instruction))) {
                    return false;
                }
            }
        }
        return true;
    }

    [[nodiscard]] std::vector<Group> find_groups()
    {
        std::vector<Group> groups;
        for (Site& site : sites_) {
            llvm::BasicBlock* block = site.anchor->getParent();
            if (site.removed || !site.is_plain() || scope_.loops.getLoopFor(block) != &loop_ ||
                !scope_.dominators.dominates(block, loop_.getLoopLatch())) {
                continue;
            }
            const bool once_more = scope_.dominators.dominates(block, exiting_);
            if (!once_more && !scope_.dominators.dominates(exiting_, block)) {
                continue;
            }
            llvm::ScalarEvolution& evolution = scope_.evolution;
            const llvm::SCEV* start = evolution.getSCEV(site.pointer);
            std::int64_t step = 0;
            if (const auto* recurrence = llvm::dyn_cast<llvm::SCEVAddRecExpr>(start)) {
                const auto* constant = recurrence->getLoop() == &loop_ && recurrence->isAffine()
                                           ? llvm::dyn_cast<llvm::SCEVConstant>(recurrence->getStepRecurrence(evolution))
                                           : nullptr;
                if (constant == nullptr || constant->getAPInt().getSignificantBits() > 32) {
                    if (!evolution.isLoopInvariant(start, &loop_)) {
                        continue;
                    }
                } else {
                    step = constant->getAPInt().getSExtValue();
                    start = recurrence->getStart();
                }
            }
            if (!evolution.isLoopInvariant(start, &loop_)) {
                continue;
            }
            if (site.offset != 0) {
                start = evolution.getAddExpr(start, evolution.getConstant(evolution.getEffectiveSCEVType(start->getType()),
                                                                          static_cast<std::uint64_t>(site.offset), true));
            }
            add_to_group(groups, site, start, step, once_more);
        }
        return groups;
    }

    void add_to_group(std::vector<Group>& groups, Site& site, const llvm::SCEV* start, std::int64_t step, bool once_more)
    {
        for (Group& group : groups) {
            if (group.kind != site.kind || group.step != step || group.once_more != once_more) {
                continue;
            }
            if (scope_.evolution.getPointerBase(group.first) != scope_.evolution.getPointerBase(start)) {
                continue;
            }
            const llvm::SCEV* difference = scope_.evolution.getMinusSCEV(start, group.first);
            if (const auto* constant = llvm::dyn_cast<llvm::SCEVConstant>(difference)) {
                group.members.push_back({&site, constant->getAPInt().getSExtValue()});
                return;
            }
        }
        groups.push_back({site.kind, once_more, step, start, {{&site, 0}}});
    }

    /// How many bytes may lie between two accesses of a run.
    [[nodiscard]] std::int64_t hole_max(SiteKind kind) const
    {
        const bool cards = kind == SiteKind::post_write && scope_.configuration.marks_cards();
        return cards ? static_cast<std::int64_t>(scope_.layer().cards->bytes()) - 1 : 0;
    }

    /// Neighbours whose union has no hole.
    [[nodiscard]] std::vector<llvm::SmallVector<Group::Member, 8>> runs_of(Group& group) const
    {
        std::sort(group.members.begin(), group.members.end(),
                  [](const Group::Member& a, const Group::Member& b) { return a.distance < b.distance; });
        std::vector<llvm::SmallVector<Group::Member, 8>> runs;
        std::int64_t end = 0;
        for (const Group::Member& member : group.members) {
            if (runs.empty() || member.distance > end + hole_max(group.kind)) {
                runs.emplace_back();
                end = member.distance;
            }
            runs.back().push_back(member);
            end = std::max(end, member.distance + static_cast<std::int64_t>(member.site->size));
        }
        return runs;
    }

    void hoist(const Group& group, const llvm::SmallVector<Group::Member, 8>& run, Sites& hoisted)
    {
        std::int64_t end = run.front().distance;
        for (const Group::Member& member : run) {
            end = std::max(end, member.distance + static_cast<std::int64_t>(member.site->size));
        }
        const std::int64_t length = end - run.front().distance;
        const std::int64_t stride = group.step < 0 ? -group.step : group.step;
        if (stride > length + hole_max(group.kind)) {
            return;
        }
        llvm::ScalarEvolution& evolution = scope_.evolution;
        llvm::Instruction* at = loop_.getLoopPreheader()->getTerminator();
        llvm::Type* integer = llvm::Type::getInt64Ty(scope_.function.getContext());
        const auto number = [&evolution, integer](std::int64_t value) {
            return evolution.getConstant(integer, static_cast<std::uint64_t>(value), true);
        };
        const llvm::SCEV* begin = evolution.getAddExpr(group.first, number(run.front().distance));
        const llvm::SCEV* taken = evolution.getNoopOrZeroExtend(taken_, integer);
        // The last iteration's index: of accesses that happen once less, one less.
        const llvm::SCEV* last = group.once_more ? taken : evolution.getMinusSCEV(taken, evolution.getOne(integer));
        const llvm::SCEV* walked = evolution.getMulExpr(last, number(group.step));
        const llvm::SCEV* lowest = group.step < 0 ? evolution.getAddExpr(begin, walked) : begin;
        const llvm::SCEV* size = evolution.getAddExpr(evolution.getMulExpr(last, number(stride)), number(length));
        if (!expander_.isSafeToExpandAt(lowest, at) || !expander_.isSafeToExpandAt(size, at)) {
            return;
        }
        Site site;
        site.kind = group.kind;
        if (is_before_access(group.kind) && (group.once_more || stride == length)) {
            // Without the case of no iteration at all, which the size then tells by itself.
            Neighbours neighbours(scope_, post_dominators_, sites_, loop_, group.kind);
            neighbours.absorb(lowest, size, site, hoisted);
        }
        site.anchor = is_before_access(group.kind) ? at : &*exit_->getFirstInsertionPt();
        site.pointer = expander_.expandCodeFor(lowest, group.first->getType(), at);
        set_size(site, size, group.once_more, stride == length, at);
        site.hoisted = true;
        for (const Group::Member& member : run) {
            member.site->removed = true;
            site.accesses.append(member.site->accesses);
        }
        hoisted.push_back(site);
    }

    void set_size(Site& site, const llvm::SCEV* size, bool once_more, bool size_tells, llvm::Instruction* at)
    {
        if (const auto* constant = llvm::dyn_cast<llvm::SCEVConstant>(size);
            constant != nullptr && (once_more || llvm::isa<llvm::SCEVConstant>(taken_))) {
            site.size = taken_->isZero() && !once_more ? 0 : constant->getAPInt().getZExtValue();
            if (site.size != 0) {
                return;
            }
        }
        site.dynamic_size = expander_.expandCodeFor(size, llvm::Type::getInt64Ty(at->getContext()), at);
        if (!once_more && !size_tells) {
            llvm::IRBuilder<> builder(at);
            llvm::Value* taken = expander_.expandCodeFor(taken_, taken_->getType(), at);
            site.dynamic_size = builder.CreateSelect(builder.CreateIsNull(taken), builder.getInt64(0), site.dynamic_size);
        }
    }

    FunctionScope& scope_;
    const llvm::PostDominatorTree& post_dominators_;
    Sites& sites_;
    llvm::Loop& loop_;
    llvm::SCEVExpander expander_;
    llvm::BasicBlock* exiting_ = nullptr;
    llvm::BasicBlock* exit_ = nullptr;
    const llvm::SCEV* taken_ = nullptr;
};

}  // namespace

void coalesce_loops(FunctionScope& scope, Sites& sites)
{
    if (scope.loops.empty()) {
        return;
    }
    // Inner loops first: what comes out of one may come out of the next.
    llvm::SmallVector<llvm::Loop*, 8> loops = scope.loops.getLoopsInPreorder();
    const llvm::PostDominatorTree post_dominators(scope.function);
    for (llvm::Loop* loop : llvm::reverse(loops)) {
        LoopCoalescer(scope, post_dominators, sites, *loop).coalesce();
    }
}

}  // namespace stillpoint::nvhooks

// no-extra-tracking [NVHooks §4.2.4]: a hook before an access is left out where, on every path to it, another one covered the
// same bytes in the same FASE; a hook behind an access, where on every path from it another one will. A data-flow analysis over the
// whole function instead of the paper's common-subexpression elimination: forwards for the hooks before, backwards
// for those after. And, for runtimes that discard new blocks of an interrupted FASE: no hooks before writes to
// them, one hook for the whole block after.

#include <algorithm>
#include <map>
#include <tuple>

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/IRBuilder.h"
#include "scope.hpp"

namespace stillpoint::nvhooks {

namespace {

/// Sites of a block in the order in which they run: by anchor, those before it, then those after.
struct AnchoredSites {
    llvm::SmallVector<Site*, 2> before;
    llvm::SmallVector<Site*, 2> after;
};

class RedundantHooks {
public:
    /// Beyond this many different ranges the analysis would cost more than it saves.
    static constexpr std::size_t ranges_max = 4096;

    RedundantHooks(FunctionScope& scope, Sites& sites, SiteKind kind) : scope_(scope), kind_(kind)
    {
        for (Site& site : sites) {
            if (!site.removed && site.kind == kind) {
                note(site);
            }
        }
    }

    void remove()
    {
        if (ranges_.empty() && fresh_.empty()) {
            return;
        }
        if (ranges_.size() + fresh_.size() > ranges_max) {
            return;
        }
        find_covered();
        solve();
        for (llvm::BasicBlock& block : scope_.function) {
            llvm::BitVector state = boundary_state(block);
            walk(block, state, true);
        }
    }

private:
    struct Range {
        const llvm::Value* base;
        std::int64_t begin;
        std::int64_t end;
    };

    void note(Site& site)
    {
        AnchoredSites& here = anchored_[site.anchor];
        (site.after ? here.after : here.before).push_back(&site);
        const auto* block = llvm::dyn_cast<llvm::CallBase>(llvm::getUnderlyingObject(site.pointer, 0));
        if (kind_ == SiteKind::pre_write && !scope_.layer().track_newly_allocated && block != nullptr &&
            scope_.configuration.is_allocator(*block)) {
            fresh_of_site_[&site] = fresh_.try_emplace(block, fresh_.size()).first->second;
        }
        if (site.is_plain()) {
            const Place place = place_of(site, scope_.layout());
            const Range range{place.base, place.offset, place.offset + static_cast<std::int64_t>(site.size)};
            const auto [known, is_new] = range_numbers_.try_emplace(std::make_tuple(range.base, range.begin, range.end), ranges_.size());
            if (is_new) {
                ranges_.push_back(range);
            }
            range_of_site_[&site] = known->second;
        }
    }

    /// Bits: ranges first, then new blocks.
    [[nodiscard]] std::size_t bits() const { return ranges_.size() + fresh_.size(); }

    void find_covered()
    {
        std::map<const llvm::Value*, std::vector<std::size_t>> by_base;
        for (std::size_t i = 0; i < ranges_.size(); ++i) {
            by_base[ranges_[i].base].push_back(i);
        }
        covered_.resize(ranges_.size());
        for (const auto& [base, numbers] : by_base) {
            llvm::BitVector of_base(static_cast<unsigned>(bits()));
            for (const std::size_t wide : numbers) {
                of_base.set(static_cast<unsigned>(wide));
                covered_[wide].resize(static_cast<unsigned>(bits()));
                for (const std::size_t narrow : numbers) {
                    if (ranges_[narrow].begin >= ranges_[wide].begin && ranges_[narrow].end <= ranges_[wide].end) {
                        covered_[wide].set(static_cast<unsigned>(narrow));
                    }
                }
            }
            of_base_[base] = of_base;
        }
    }

    [[nodiscard]] bool forwards() const { return is_before_access(kind_); }

    /// The facts that hold where the walk through the block begins: those that all its predecessors know.
    [[nodiscard]] llvm::BitVector boundary_state(llvm::BasicBlock& block)
    {
        llvm::BitVector state(static_cast<unsigned>(bits()), true);
        bool any = false;
        const auto meet = [this, &state, &any](const llvm::BasicBlock* neighbour) {
            any = true;
            if (const auto known = result_.find(neighbour); known != result_.end()) {
                state &= known->second;
            }
        };
        if (forwards()) {
            for (const llvm::BasicBlock* neighbour : llvm::predecessors(&block)) {
                meet(neighbour);
            }
        } else {
            for (const llvm::BasicBlock* neighbour : llvm::successors(&block)) {
                meet(neighbour);
            }
        }
        if (!any || (forwards() && block.isEntryBlock()) || (!forwards() && !reaches_end_.contains(&block))) {
            state.reset();
        }
        return state;
    }

    void find_blocks_that_end()
    {
        llvm::SmallVector<const llvm::BasicBlock*, 16> waiting;
        for (const llvm::BasicBlock& block : scope_.function) {
            if (llvm::succ_empty(&block)) {
                waiting.push_back(&block);
            }
        }
        while (!waiting.empty()) {
            const llvm::BasicBlock* block = waiting.pop_back_val();
            if (reaches_end_.insert(block).second) {
                waiting.append(llvm::pred_begin(block), llvm::pred_end(block));
            }
        }
    }

    void solve()
    {
        find_blocks_that_end();
        llvm::ReversePostOrderTraversal<llvm::Function*> order(&scope_.function);
        std::vector<llvm::BasicBlock*> blocks(order.begin(), order.end());
        if (!forwards()) {
            std::reverse(blocks.begin(), blocks.end());
        }
        for (bool changed = true; changed;) {
            changed = false;
            for (llvm::BasicBlock* block : blocks) {
                llvm::BitVector state = boundary_state(*block);
                walk(*block, state, false);
                auto [known, is_new] = result_.try_emplace(block, state);
                if (is_new || known->second != state) {
                    known->second = state;
                    changed = true;
                }
            }
        }
    }

    void walk(llvm::BasicBlock& block, llvm::BitVector& state, bool removing)
    {
        if (forwards()) {
            for (llvm::Instruction& instruction : block) {
                const auto here = anchored_.find(&instruction);
                const bool has_sites = here != anchored_.end();
                if (has_sites) {
                    for (Site* site : here->second.before) {
                        pass(*site, state, removing);
                    }
                }
                pass(instruction, state);
                if (has_sites) {
                    for (Site* site : here->second.after) {
                        pass(*site, state, removing);
                    }
                }
            }
            return;
        }
        for (llvm::Instruction& instruction : llvm::reverse(block)) {
            const auto here = anchored_.find(&instruction);
            const bool has_sites = here != anchored_.end();
            if (has_sites) {
                for (Site* site : llvm::reverse(here->second.after)) {
                    pass(*site, state, removing);
                }
            }
            pass(instruction, state);
            if (has_sites) {
                for (Site* site : llvm::reverse(here->second.before)) {
                    pass(*site, state, removing);
                }
            }
        }
    }

    void pass(const llvm::Instruction& instruction, llvm::BitVector& state)
    {
        if (is_boundary(instruction, scope_.configuration)) {
            state.reset();
            return;
        }
        // In a loop the same name stands for another value from here on.
        if (const auto found = of_base_.find(&instruction); found != of_base_.end()) {
            state.reset(found->second);
        }
        if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction)) {
            if (const auto block = fresh_.find(call); block != fresh_.end()) {
                state.set(static_cast<unsigned>(ranges_.size() + block->second));
            }
        }
    }

    void pass(Site& site, llvm::BitVector& state, bool removing)
    {
        if (const auto fresh = fresh_of_site_.find(&site);
            fresh != fresh_of_site_.end() && state.test(static_cast<unsigned>(ranges_.size() + fresh->second))) {
            site.removed = site.removed || removing;
            return;
        }
        const auto range = range_of_site_.find(&site);
        if (range == range_of_site_.end()) {
            return;
        }
        if (state.test(static_cast<unsigned>(range->second))) {
            site.removed = site.removed || removing;
        } else {
            state |= covered_[range->second];
        }
    }

    FunctionScope& scope_;
    SiteKind kind_;
    std::map<const llvm::Instruction*, AnchoredSites> anchored_;
    std::vector<Range> ranges_;
    std::map<std::tuple<const llvm::Value*, std::int64_t, std::int64_t>, std::size_t> range_numbers_;
    std::map<const Site*, std::size_t> range_of_site_;
    std::map<const llvm::CallBase*, std::size_t> fresh_;
    std::map<const Site*, std::size_t> fresh_of_site_;
    std::vector<llvm::BitVector> covered_;                     ///< by range: itself and all within it
    std::map<const llvm::Value*, llvm::BitVector> of_base_;  ///< ranges that begin at a value
    llvm::DenseMap<const llvm::BasicBlock*, llvm::BitVector> result_;
    llvm::DenseSet<const llvm::BasicBlock*> reaches_end_;
};

/// Where all writes to a new block stand in the allocation's own basic block, with nothing between that ends the FASE: one hook for
/// the block, after the last.
class NewBlocks {
public:
    NewBlocks(FunctionScope& scope, Sites& sites) : scope_(scope), sites_(sites) {}

    void merge()
    {
        llvm::MapVector<llvm::CallBase*, std::vector<std::size_t>> writes;  // in the order of the code
        for (std::size_t i = 0; i < sites_.size(); ++i) {
            auto* call = llvm::dyn_cast<llvm::CallBase>(llvm::getUnderlyingObject(sites_[i].pointer, 0));
            if (!sites_[i].removed && sites_[i].kind == SiteKind::post_write && call != nullptr &&
                scope_.configuration.is_allocator(*call)) {
                writes[call].push_back(i);
            }
        }
        for (auto& [call, numbers] : writes) {
            const std::optional<SizeExpression>& size = scope_.configuration.allocators.find(call->getCalledFunction()->getName())->second;
            if (size && numbers.size() > 1) {
                merge_writes(*call, *size, numbers);
            }
        }
    }

private:
    void merge_writes(llvm::CallBase& call, const SizeExpression& size, const std::vector<std::size_t>& numbers)
    {
        Site* last = &sites_[numbers.front()];
        for (const std::size_t number : numbers) {
            Site& site = sites_[number];
            if (site.anchor->getParent() != call.getParent()) {
                return;
            }
            last = last->anchor->comesBefore(site.anchor) ? &site : last;
        }
        for (const llvm::Instruction* at = call.getNextNode(); at != last->anchor; at = at->getNextNode()) {
            if (is_boundary(*at, scope_.configuration)) {
                return;
            }
        }
        llvm::IRBuilder<> builder(&call);
        llvm::Value* bytes = size.emit(builder, call, nullptr);
        for (const std::size_t number : numbers) {
            sites_[number].removed = &sites_[number] != last;
        }
        Site whole;
        whole.kind = SiteKind::post_write;
        whole.anchor = last->anchor;
        whole.after = last->after;
        whole.pointer = &call;
        if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(bytes)) {
            whole.size = constant->getZExtValue();
        } else {
            whole.dynamic_size = bytes;
        }
        *last = whole;
    }

    FunctionScope& scope_;
    Sites& sites_;
};

}  // namespace

void remove_extra_tracking(FunctionScope& scope, Sites& sites)
{
    if (!scope.layer().track_newly_allocated && !scope.configuration.marks_cards()) {
        NewBlocks(scope, sites).merge();
    }
    for (const SiteKind kind : {SiteKind::pre_read, SiteKind::post_read, SiteKind::pre_write, SiteKind::post_write}) {
        RedundantHooks(scope, sites, kind).remove();
    }
}

}  // namespace stillpoint::nvhooks

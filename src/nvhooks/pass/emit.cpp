// Writes what the sites say: checks, calls of hooks, and marks of cards in line.

#include <algorithm>

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/Support/Alignment.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm_version.hpp"
#include "nvhooks/abi/nvhooks_abi.h"
#include "translate.hpp"

namespace stillpoint::nvhooks {

namespace {

class Emitter {
public:
    Emitter(FunctionScope& scope, llvm::DomTreeUpdater& updater)
        : scope_(scope), updater_(updater), translator_(scope, updater), translates_(scope.layer().has(Hook::to_absolute_ptr))
    {
    }

    Emitted emit(const Sites& sites, const std::vector<PointerUse>& uses)
    {
        struct Placed {
            const Site* site;
            llvm::Instruction* before;
        };
        std::vector<Placed> placed;
        // Hooks behind an instruction come before those that precede the next one.
        for (const bool after : {true, false}) {
            for (const Site& site : sites) {
                if (!site.removed && site.after == after) {
                    placed.push_back({&site, after ? site.anchor->getNextNode() : before_which(site)});
                }
            }
        }
        if (translates_) {
            translator_.plan(sites, uses);
            for (const PointerUse& use : uses) {
                translator_.rewrite(use);
            }
        }
        for (const Placed& one : placed) {
            if (one.site->effect != nullptr && one.site->size == 0 && one.site->dynamic_size == nullptr) {
                emit_effect(*one.site, one.before);
            } else {
                emit_hook(*one.site, one.before, one.site->dynamic_size);
            }
        }
        for (const auto& [place, group] : groups_) {
            emit_end_of_group(place, group);
        }
        return {static_cast<unsigned>(placed.size()), translator_.checked_outside_loops()};
    }

private:
    /// Where the hook's code goes: before which instruction, and the address.
    struct Guarded {
        llvm::Instruction* before;
        llvm::Value* address;
    };

    /// The sites before writes that wait together, by the instruction that they stand before.
    using Groups = llvm::MapVector<llvm::Instruction*, llvm::SmallVector<const Site*, 4>>;

    llvm::Instruction* before_which(const Site& site)
    {
        if (site.gathered_at == nullptr) {
            return site.anchor;
        }
        groups_[site.gathered_at].push_back(&site);
        return site.gathered_at;
    }

    /// After the hooks of a group, where one of its objects is durable.
    void emit_end_of_group(llvm::Instruction* place, llvm::ArrayRef<const Site*> group)
    {
        BuilderBefore builder(place, place);
        llvm::SmallPtrSet<const llvm::Value*, 4> objects;
        llvm::Value* any = nullptr;
        bool always = false;
        for (const Site* site : group) {
            if (objects.insert(llvm::getUnderlyingObject(site->pointer)).second) {
                llvm::Value* durable = emit_is_durable(builder, site->pointer, scope_.layer());
                always = always || durable == nullptr;
                any = any == nullptr || durable == nullptr ? durable : builder.CreateOr(any, durable);
            }
        }
        llvm::Instruction* at = always ? place : split_if(any, place, false, updater_, scope_.loops);
        BuilderBefore(at, place).CreateCall(hook(Hook::writes_gathered));
    }

    /// Opens the block that runs if the bytes at `pointer` are durable.
    Guarded guard(const Site& site, llvm::Instruction* before)
    {
        llvm::Value* durable = nullptr;
        llvm::Value* distance = nullptr;
        if (translates_) {
            const Translation translation = translator_.translation_of(site.pointer, site.anchor);
            durable = translation.is_durable;
            distance = translation.distance;
        } else {
            durable = translator_.is_durable_outside_loops(site.pointer, site.anchor);
        }
        BuilderBefore builder(before, site.anchor);
        llvm::Value* address = site.pointer;
        if (site.offset != 0) {
            address = builder.CreateGEP(builder.getInt8Ty(), address, builder.getInt64(static_cast<std::uint64_t>(site.offset)));
        }
        if (durable == nullptr) {
            durable = emit_is_durable(builder, address, scope_.layer());
        }
        llvm::Value* condition = durable;
        if (site.condition != nullptr) {
            condition = condition == nullptr ? site.condition : builder.CreateAnd(condition, site.condition);
        }
        if (distance != nullptr) {
            address = builder.CreateGEP(builder.getInt8Ty(), address, distance);
        }
        if (condition == nullptr) {
            return {before, address};
        }
        return {split_if(condition, before, false, updater_, scope_.loops), address};
    }

    void emit_hook(const Site& site, llvm::Instruction* before, llvm::Value* dynamic_size)
    {
        const Guarded here = guard(site, before);
        BuilderBefore builder(here.before, site.anchor);
        if (site.kind == SiteKind::pointer_stored) {
            builder.CreateCall(hook(Hook::pointer_stored), {here.address, site.stored_pointer});
            return;
        }
        llvm::Value* size = site.size != 0 ? builder.getInt64(site.size) : dynamic_size;
        if (site.kind == SiteKind::post_write && scope_.configuration.marks_cards()) {
            mark(site, here, size);
        } else {
            call(site.kind, site, here, size);
        }
    }

    [[nodiscard]] llvm::FunctionCallee hook(Hook which) { return hook_function(*scope_.function.getParent(), which); }

    void call(SiteKind kind, const Site& site, const Guarded& here, llvm::Value* size)
    {
        llvm::Instruction* before = here.before;
        if (!llvm::isa<llvm::ConstantInt>(size)) {
            llvm::Value* some = BuilderBefore(before, site.anchor).CreateIsNotNull(size);
            before = split_if(some, before, false, updater_, scope_.loops);
        }
        static constexpr Hook hooks[] = {Hook::pre_nvm_read, Hook::post_nvm_read, Hook::pre_nvm_write, Hook::post_nvm_write};
        const Hook which = site.gathered_at != nullptr ? Hook::pre_nvm_write_gathered : hooks[static_cast<std::size_t>(kind)];
        BuilderBefore(before, site.anchor).CreateCall(hook(which), {here.address, size});
    }

    /// Test, then set: the order of nvhooks_abi.h. The loads and stores of cards are atomic, so neither they nor the store before
    /// them move past each other.
    void mark(const Site& site, const Guarded& here, llvm::Value* size)
    {
        const std::uint64_t card_bytes = scope_.layer().cards->bytes();
        llvm::Instruction* before = here.before;
        if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(size)) {
            if (constant->getZExtValue() > card_bytes) {
                BuilderBefore(before, site.anchor).CreateCall(hook(Hook::post_nvm_write), {here.address, size});
            } else {
                mark_ends(site, here.address, size, before, lies_in_one_card(site));
            }
            return;
        }
        BuilderBefore builder(before, site.anchor);
        // A size of 0 wraps, and goes to the call.
        llvm::Value* is_short = builder.CreateICmpULT(builder.CreateSub(size, builder.getInt64(1)), builder.getInt64(card_bytes));
        llvm::Instruction* then = nullptr;
        llvm::Instruction* otherwise = nullptr;
        split_if_else(is_short, before, &then, &otherwise, updater_, scope_.loops);
        BuilderBefore(otherwise, site.anchor).CreateCall(hook(Hook::post_nvm_write), {here.address, size});
        mark_ends(site, here.address, size, then, false);
    }

    void mark_ends(const Site& site, llvm::Value* address, llvm::Value* size, llvm::Instruction* before, bool only_one)
    {
        const CardTable& cards = *scope_.layer().cards;
        BuilderBefore builder(before, site.anchor);
        llvm::Value* first_byte = builder.CreatePtrToInt(address, builder.getInt64Ty());
        llvm::Value* first = card_of(builder, first_byte, cards.shift, cards.table);
        llvm::Value* mark = load_card(builder, first);
        llvm::Value* last_byte = nullptr;
        llvm::Value* last = nullptr;
        if (!only_one) {
            last_byte = builder.CreateAdd(first_byte, builder.CreateSub(size, builder.getInt64(1)));
            last = card_of(builder, last_byte, cards.shift, cards.table);
            mark = builder.CreateAnd(mark, load_card(builder, last));
        }
        llvm::Instruction* set = split_if(is_clear(builder, mark), before, true, updater_, scope_.loops);
        BuilderBefore setting(set, site.anchor);
        store_card(setting, first, llvm::AtomicOrdering::Monotonic);
        if (last != nullptr) {
            store_card(setting, last, llvm::AtomicOrdering::Monotonic);
        }
        if (cards.coarse_shift != 0) {
            mark_coarse(site, set, first_byte);
            if (last_byte != nullptr) {
                mark_coarse(site, set, last_byte);
            }
        }
    }

    /// After the card, which it must not overtake.
    void mark_coarse(const Site& site, llvm::Instruction* before, llvm::Value* byte)
    {
        const CardTable& cards = *scope_.layer().cards;
        BuilderBefore builder(before, site.anchor);
        llvm::Value* card = card_of(builder, byte, cards.coarse_shift, cards.coarse_table);
        llvm::Instruction* set = split_if(is_clear(builder, load_card(builder, card)), before, false, updater_, scope_.loops);
        BuilderBefore setting(set, site.anchor);
        store_card(setting, card, llvm::AtomicOrdering::Release);
    }

    [[nodiscard]] llvm::Value* card_of(llvm::IRBuilder<>& builder, llvm::Value* address, unsigned shift, std::uint64_t table) const
    {
        const Window& window = *scope_.layer().window;
        const std::uint64_t bias = table - (window.index << window.shift >> shift);
        llvm::Value* card = builder.CreateAdd(builder.CreateLShr(address, shift), builder.getInt64(bias));
        return builder.CreateIntToPtr(card, builder.getPtrTy());
    }

    static llvm::Value* is_clear(llvm::IRBuilder<>& builder, llvm::Value* mark)
    {
        return builder.CreateIsNull(builder.CreateAnd(mark, builder.getInt8(NVHOOKS_CARD_WRITTEN)));
    }

    static llvm::Value* load_card(llvm::IRBuilder<>& builder, llvm::Value* card)
    {
        llvm::LoadInst* load = builder.CreateAlignedLoad(builder.getInt8Ty(), card, llvm::Align(1), "card");
        load->setAtomic(llvm::AtomicOrdering::Monotonic);
        load->setMetadata(llvm::LLVMContext::MD_nosanitize, llvm::MDNode::get(load->getContext(), {}));
        return load;
    }

    static void store_card(llvm::IRBuilder<>& builder, llvm::Value* card, llvm::AtomicOrdering ordering)
    {
        llvm::StoreInst* store = builder.CreateAlignedStore(builder.getInt8(NVHOOKS_CARD_WRITTEN), card, llvm::Align(1));
        store->setAtomic(ordering);
        store->setMetadata(llvm::LLVMContext::MD_nosanitize, llvm::MDNode::get(store->getContext(), {}));
    }

    /// Whether alignment shows that the bytes cannot straddle the end of a card.
    [[nodiscard]] bool lies_in_one_card(const Site& site) const
    {
        if (site.size == 1) {
            return true;
        }
        llvm::Align alignment = llvm::getKnownAlignment(site.pointer, scope_.layout());
        const llvm::Value* accessed = llvm::getLoadStorePointerOperand(site.anchor);
        if (accessed == site.pointer && site.after) {
            alignment = std::max(alignment, llvm::getLoadStoreAlignment(site.anchor));
        }
        const auto offset = static_cast<std::uint64_t>(site.offset);
        return llvm::isPowerOf2_64(site.size) && llvm::commonAlignment(alignment, offset) >= llvm::Align(site.size);
    }

    /// A described call whose range needs more than constants and arguments. What the call may change is computed before it, and
    /// only for durable memory: strlen is not free.
    void emit_effect(const Site& site, llvm::Instruction* before)
    {
        const MemoryEffect& effect = *site.effect;
        const bool is_before = is_before_access(site.kind);
        const SizeExpression& size = is_before ? effect.size_before() : effect.size;
        Site placed = site;
        llvm::Instruction* at = site.call;
        llvm::Value* durable = effect.indirect ? nullptr : is_durable(site);
        llvm::Instruction* then = durable == nullptr ? at : split_if(durable, at, false, updater_, scope_.loops);
        BuilderBefore inside(then, site.call);
        if (!effect.at_argument()) {
            placed.pointer = range_of(inside, site);
        }
        llvm::Value* bytes = size.uses_result() ? nullptr : size.emit(inside, *site.call, nullptr);
        if (durable != nullptr) {
            bytes = bytes == nullptr ? nullptr : joined(bytes, inside.getInt64(0), then, at, "");
            placed.pointer = placed.pointer == site.pointer ? site.pointer : joined(placed.pointer, site.pointer, then, at, "");
        }
        if (bytes == nullptr) {
            BuilderBefore behind(before, site.call);
            bytes = size.emit(behind, *site.call, site.call);
        }
        placed.size = 0;
        emit_hook(placed, is_before ? site.call : before, bytes);
    }

    [[nodiscard]] llvm::Value* is_durable(const Site& site)
    {
        if (translates_) {
            return translator_.translation_of(site.pointer, site.call).is_durable;
        }
        BuilderBefore builder(site.call, site.call);
        return emit_is_durable(builder, site.pointer, scope_.layer());
    }

    /// Where the range begins, as far as it is not the argument itself. The call's argument is absolute by now; the site's is as the
    /// program has it, so their distance is what counts.
    static llvm::Value* range_of(llvm::IRBuilder<>& builder, const Site& site)
    {
        const MemoryEffect& effect = *site.effect;
        llvm::Value* absolute = effect.emit_pointer(builder, *site.call);
        llvm::Value* argument = site.call->getArgOperand(effect.pointer_argument);
        if (effect.indirect || argument == site.pointer) {
            return absolute;
        }
        llvm::Value* offset = builder.CreateSub(builder.CreatePtrToInt(absolute, builder.getInt64Ty()),
                                                builder.CreatePtrToInt(argument, builder.getInt64Ty()));
        return builder.CreateGEP(builder.getInt8Ty(), site.pointer, offset);
    }

    FunctionScope& scope_;
    llvm::DomTreeUpdater& updater_;
    Translator translator_;
    bool translates_;
    Groups groups_;
};

}  // namespace

Emitted emit_sites(FunctionScope& scope, const Sites& sites, const std::vector<PointerUse>& uses)
{
    llvm::DomTreeUpdater updater(scope.dominators, llvm::DomTreeUpdater::UpdateStrategy::Eager);
    return Emitter(scope, updater).emit(sites, uses);
}

}  // namespace stillpoint::nvhooks

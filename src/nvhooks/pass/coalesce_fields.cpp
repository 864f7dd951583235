// coalesce-fields [NVHooks §4.2.2]: hooks of neighbouring accesses in one block become one: before the first of them, or
// after the last. Only what is written is hooked: accesses merge where they touch or overlap; with cards,
// where they lie within the length of a card, whose two ends are then marked.

#include <algorithm>
#include <map>
#include <tuple>

#include "scope.hpp"

namespace stillpoint::nvhooks {

namespace {

/// A site, and where its anchor stands in its block.
struct Candidate {
    Site* site;
    std::int64_t begin;
    std::int64_t end;
    unsigned position;
};

/// Same kind, same base, and nothing between them that ends a FASE.
using Key = std::tuple<const llvm::BasicBlock*, SiteKind, const llvm::Value*, unsigned>;

class FieldCoalescer {
public:
    FieldCoalescer(FunctionScope& scope, Sites& sites) : scope_(scope), sites_(sites) { number_instructions(); }

    void coalesce()
    {
        std::map<Key, std::vector<Candidate>> candidates;
        for (Site& site : sites_) {
            if (site.removed || !site.is_plain()) {
                continue;
            }
            const Place place = place_of(site, scope_.layout());
            const Number& number = numbers_[site.anchor];
            const unsigned section = number.section + (site.after && number.is_boundary ? 1 : 0);
            candidates[{site.anchor->getParent(), site.kind, place.base, section}].push_back(
                {&site, place.offset, place.offset + static_cast<std::int64_t>(site.size), 2 * number.position + (site.after ? 1 : 0)});
        }
        for (auto& [key, found] : candidates) {
            merge(found);
        }
    }

private:
    struct Number {
        unsigned position = 0;
        unsigned section = 0;  ///< how many boundaries come before it in its block
        bool is_boundary = false;
    };

    void number_instructions()
    {
        for (const llvm::BasicBlock& block : scope_.function) {
            Number next;
            for (const llvm::Instruction& instruction : block) {
                next.is_boundary = is_boundary(instruction, scope_.configuration);
                numbers_[&instruction] = next;
                ++next.position;
                next.section += next.is_boundary ? 1 : 0;
            }
        }
    }

    [[nodiscard]] bool may_join(SiteKind kind, const Candidate& next, std::int64_t begin, std::int64_t end) const
    {
        if (next.begin <= end) {
            return true;
        }
        if (kind != SiteKind::post_write || !scope_.configuration.marks_cards()) {
            return false;
        }
        return next.end - begin <= static_cast<std::int64_t>(scope_.layer().cards->bytes());
    }

    void merge(std::vector<Candidate>& found)
    {
        std::sort(found.begin(), found.end(),
                  [](const Candidate& a, const Candidate& b) { return std::tie(a.begin, a.position) < std::tie(b.begin, b.position); });
        for (std::size_t first = 0; first < found.size();) {
            std::int64_t end = found[first].end;
            std::size_t last = first + 1;
            while (last < found.size() && may_join(found[first].site->kind, found[last], found[first].begin, end)) {
                end = std::max(end, found[last].end);
                ++last;
            }
            if (last - first > 1) {
                merge_run(found.data() + first, last - first, end);
            }
            first = last;
        }
    }

    /// The hook that stands outermost becomes the hook of all.
    void merge_run(Candidate* run, std::size_t count, std::int64_t end)
    {
        const auto earlier = [](const Candidate& a, const Candidate& b) { return a.position < b.position; };
        Candidate* keeper = is_before_access(run->site->kind) ? std::min_element(run, run + count, earlier)
                                                              : std::max_element(run, run + count, earlier);
        const std::int64_t begin = run->begin;
        for (std::size_t i = 0; i < count; ++i) {
            run[i].site->removed = &run[i] != keeper;
        }
        keeper->site->offset += begin - keeper->begin;
        keeper->site->size = static_cast<std::uint64_t>(end - begin);
    }

    FunctionScope& scope_;
    Sites& sites_;
    llvm::DenseMap<const llvm::Instruction*, Number> numbers_;
};

}  // namespace

void coalesce_fields(FunctionScope& scope, Sites& sites) { FieldCoalescer(scope, sites).coalesce(); }

}  // namespace stillpoint::nvhooks

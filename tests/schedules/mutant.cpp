#include "tests/schedules/mutant.hpp"

#include <string_view>

#include "tests/schedules/memory.hpp"

namespace stillpoint::schedules {

const char* name_of(Kind kind) noexcept
{
    constexpr const char* names[] = {"load",  "store",          "exchange",   "fetch_add",  "fetch_or",   "fetch_and",  "compare_exchange",
                                     "fence", "compiler fence", "membarrier", "futex wait", "futex wake", "plain read", "plain write",
                                     "await", "clock",          "yield",      "label"};
    return names[static_cast<std::size_t>(kind)];
}

const char* name_of(std::memory_order order) noexcept
{
    switch (order) {
    case std::memory_order_relaxed: return "relaxed";
    case std::memory_order_consume: return "consume";
    case std::memory_order_acquire: return "acquire";
    case std::memory_order_release: return "release";
    case std::memory_order_acq_rel: return "acq_rel";
    default: return "seq_cst";
    }
}

std::string short_path(const char* path)
{
    const std::string_view whole{path};
    for (const std::string_view folder : {"/src/", "/tests/"}) {
        const auto found = whole.rfind(folder);
        if (found != std::string_view::npos) {
            return std::string{whole.substr(found + 1)};
        }
    }
    return std::string{whole};
}

std::vector<Mutant> mutants_of(const SiteSet& sites)
{
    using Change = Mutant::Change;
    std::vector<Mutant> mutants;
    for (const Site& site : sites) {
        switch (site.kind) {
        case Kind::store:
        case Kind::add:
        case Kind::bit_or:
        case Kind::bit_and:
        case Kind::fence:
        case Kind::compiler_fence:
        case Kind::membarrier:
        case Kind::futex_wake: mutants.push_back({site, Change::dropped}); break;
        case Kind::load: mutants.push_back({site, Change::blind}); break;
        default: break;
        }
        if (site.kind <= Kind::compare_exchange) {
            if (acquires(site.order)) {
                mutants.push_back({site, Change::not_acquire});
            }
            if (releases(site.order)) {
                mutants.push_back({site, Change::not_release});
            }
        }
    }
    return mutants;
}

std::string describe(const Mutant& mutant)
{
    constexpr const char* changes[] = {"left out", "without acquire", "without release", "finds zero"};
    return mutant.site.file + ":" + std::to_string(mutant.site.line) + " " + name_of(mutant.site.kind) + " " + name_of(mutant.site.order) +
           " " + changes[static_cast<std::size_t>(mutant.change)];
}

}  // namespace stillpoint::schedules

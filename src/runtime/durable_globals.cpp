#include "runtime/durable_globals.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "core/store_marks.hpp"
#include "heap/heap.hpp"
#include "os/elf_section.hpp"
#include "os/log.hpp"
#include "os/section_variables.hpp"
#include "pool/image_layout.hpp"
#include "runtime/durable_globals_match.hpp"
#include "runtime/durable_globals_table.hpp"
#include "runtime/dying_memory.hpp"
#include "runtime/sync_objects.hpp"

namespace stillpoint {

namespace {

using namespace durable_globals;

constexpr const char* section_name = "sp_persistent";
constexpr const char* records_name = "sp_persistent_names";

Variable variable_of(const os::VariableSection& section, const os::SectionVariable& variable)
{
    return {variable.name, variable.scope, variable.type, section.module, variable.size};
}

std::string joined(const std::vector<std::string>& texts, std::string_view separator)
{
    std::string all;
    for (const std::string& text : texts) {
        all += (all.empty() ? std::string_view() : separator);
        all += text;
    }
    return all;
}

/// One start: what the program has, what the pool keeps, and what becomes of both.
class GlobalsRestore {
public:
    GlobalsRestore(Engine& engine, Heap& heap, const Heap::Options& options) : engine_(engine), heap_(heap), options_(options) {}

    Result<void> run(bool accept)
    {
        // First of all, as a check does: damage is damage, whether this program needs the variables or not.
        if (auto read = read_blocks(); !read) {
            return read;
        }
        sections_ = os::find_variable_sections(section_name, records_name);
        if (sections_.empty()) {
            return {};
        }
        find_homes();
        match_names();
        if (auto decided = decide(accept); !decided) {
            return decided;
        }
        return put_back();
    }

private:
    struct Home {
        std::size_t block = nothing;
        bool same_layout = false;  ///< the section is as it was: no name is needed
    };

    layout::ImageHeader& header() { return *reinterpret_cast<layout::ImageHeader*>(engine_.image_base()); }

    Result<void> read_blocks()
    {
        for (auto& entry : header().durable_globals) {
            if (entry.name[0] == '\0') {
                continue;
            }
            auto block = read_block(options_, entry);
            if (!block) {
                return pass_on(block.error());
            }
            blocks_.push_back(std::move(*block));
        }
        return {};
    }

    [[nodiscard]] bool is_same_layout(const os::VariableSection& section, const Block& block) const
    {
        if (block.section_bytes != section.size) {
            return false;
        }
        return block.has_table ? block.identity != 0 && block.identity == section.identity
                               : block.entry->layout_hash == section.symbols_hash;
    }

    [[nodiscard]] bool is_home(std::size_t block) const
    {
        return std::ranges::any_of(homes_, [block](const Home& home) { return home.block == block; });
    }

    template <class Fits>
    void claim(Fits&& fits, bool same_layout)
    {
        for (std::size_t s = 0; s < sections_.size(); ++s) {
            for (std::size_t b = 0; b < blocks_.size() && homes_[s].block == nothing; ++b) {
                if (!is_home(b) && fits(sections_[s], blocks_[b])) {
                    homes_[s] = {b, same_layout};
                }
            }
        }
    }

    void find_homes()
    {
        homes_.assign(sections_.size(), {});
        const auto same_name = [](const os::VariableSection& section, const Block& block) { return section.module == block.entry->name; };
        claim([&](const auto& section, const auto& block) { return same_name(section, block) && is_same_layout(section, block); }, true);
        claim([&](const auto& section, const auto& block) { return is_same_layout(section, block); }, true);
        claim(same_name, false);
    }

    void match_names()
    {
        for (std::size_t s = 0; s < sections_.size(); ++s) {
            for (std::size_t v = 0; v < sections_[s].variables.size() && !homes_[s].same_layout; ++v) {
                present_.push_back(variable_of(sections_[s], sections_[s].variables[v]));
                present_places_.push_back({s, v});
            }
        }
        for (std::size_t b = 0; b < blocks_.size(); ++b) {
            const bool is_used_as_it_is = std::ranges::any_of(homes_,
                                                              [b](const Home& home) { return home.block == b && home.same_layout; });
            for (std::size_t v = 0; v < blocks_[b].variables.size() && !is_used_as_it_is; ++v) {
                kept_.push_back(blocks_[b].variables[v].variable);
                kept_places_.push_back({b, v});
            }
        }
        matching_ = match(present_, kept_);
        // A module that was renamed continues with the block that has most of it: the first that it takes from.
        for (std::size_t i = 0; i < present_.size(); ++i) {
            const std::size_t k = matching_.of_present[i];
            Home& home = homes_[present_places_[i].of];
            if (k != nothing && home.block == nothing && !is_home(kept_places_[k].of)) {
                home.block = kept_places_[k].of;
            }
        }
    }

    [[nodiscard]] const KeptVariable& kept_at(std::size_t k) const { return blocks_[kept_places_[k].of].variables[kept_places_[k].index]; }
    [[nodiscard]] bool is_gone(std::size_t k) const { return !matching_.kept_is_taken[k] && !kept_at(k).retired; }
    [[nodiscard]] bool is_new(std::size_t i) const { return matching_.of_present[i] == nothing && !present_[i].name.empty(); }

    /// The facts that the user must hear, as sentences.
    std::vector<std::string> find_problems()
    {
        std::vector<std::string> problems = matching_.refused;
        bool is_kept_elsewhere = false;
        for (std::size_t b = 0; b < blocks_.size(); ++b) {
            is_kept_elsewhere = is_kept_elsewhere || (!blocks_[b].has_table && !is_home(b));
        }
        for (std::size_t s = 0; s < sections_.size(); ++s) {
            const bool is_old_and_other = homes_[s].block != nothing && !homes_[s].same_layout && !blocks_[homes_[s].block].has_table;
            if (is_old_and_other || (homes_[s].block == nothing && is_kept_elsewhere)) {
                problems.push_back(text_of("all of {}: an earlier Stillpoint has kept them without their names; run the program that "
                                           "wrote them once with this one",
                                           sections_[s].module));
            }
        }
        bool any_gone = false;
        for (std::size_t k = 0; k < kept_.size(); ++k) {
            any_gone = any_gone || is_gone(k);
        }
        for (std::size_t i = 0; i < present_.size(); ++i) {
            const os::VariableSection& section = sections_[present_places_[i].of];
            if (present_[i].name.empty() && any_gone) {
                problems.push_back(text_of("{} bytes of {} without a name: it is stripped. Keep its symbols, or declare the variables "
                                           "with SP_PERSISTENT_VARIABLE",
                                           present_[i].size, section.module));
            }
        }
        for (std::size_t k = 0; k < kept_.size(); ++k) {
            if (is_gone(k)) {
                add_problem_of_gone(k, problems);
            }
        }
        return problems;
    }

    void add_problem_of_gone(std::size_t k, std::vector<std::string>& problems)
    {
        for (std::size_t i = 0; i < present_.size(); ++i) {
            const std::size_t home = homes_[present_places_[i].of].block;
            if (!is_new(i) || (home != kept_places_[k].of && (home != nothing || is_home(kept_places_[k].of)))) {
                continue;
            }
            if (kept_[k].name.empty()) {
                problems.push_back(text_of("{}: the pool has {} bytes of {} without names, which was stripped then", present_[i].name,
                                           kept_[k].size, kept_[k].module));
                return;
            }
            const bool same_type = kept_[k].type.empty() || present_[i].type.empty() || kept_[k].type == present_[i].type;
            if (kept_[k].size == present_[i].size && same_type) {
                problems.push_back(
                    text_of("{} is gone and {} is new, of the same size: is it the same variable?", kept_[k].name, present_[i].name));
                return;
            }
        }
    }

    Result<void> decide(bool accept)
    {
        const std::vector<std::string> problems = find_problems();
        if (!problems.empty() && !accept) {
            return fail(
                SP_E_GLOBALS_CHANGED, 0,
                "SP_PERSISTENT variables of the pool and of the program cannot be matched: {}. Run the program that wrote the pool, "
                "or let what cannot be matched begin with its initial value (option changed_globals=accept)",
                joined(problems, "; ").substr(0, 300));
        }
        if (!problems.empty()) {
            os::log(os::Severity::warning, "SP_PERSISTENT variables begin with their initial values where they cannot be matched: {}",
                    joined(problems, "; "));
        }
        tell_of_changes();
        return {};
    }

    void tell_of_changes()
    {
        std::vector<std::string> added;
        std::vector<std::string> gone;
        for (std::size_t i = 0; i < present_.size(); ++i) {
            if (is_new(i) && homes_[present_places_[i].of].block != nothing) {
                added.push_back(present_[i].name);
            }
        }
        for (std::size_t k = 0; k < kept_.size(); ++k) {
            if (is_gone(k) && !kept_[k].name.empty()) {
                gone.push_back(kept_[k].name);
            }
        }
        if (!added.empty()) {
            os::log(os::Severity::note, "new SP_PERSISTENT variables begin with their initial values: {}", joined(added, ", "));
        }
        if (!gone.empty()) {
            os::log(os::Severity::warning, "the pool keeps SP_PERSISTENT variables that this program does not have: {}",
                    joined(gone, ", "));
        }
        for (const os::VariableSection& section : sections_) {
            if (section.has_unnamed()) {
                os::log(os::Severity::warning,
                        "{} is stripped: another build of it will not find its SP_PERSISTENT variables. Keep its symbols, or declare them "
                        "with SP_PERSISTENT_VARIABLE",
                        section.module);
            }
        }
    }

    layout::DurableGlobals* free_entry()
    {
        auto& entries = header().durable_globals;
        const auto found = std::ranges::find_if(entries, [](const auto& entry) { return entry.name[0] == '\0'; });
        return found == std::end(entries) ? nullptr : found;
    }

    /// The values of a section, and those of its block that the program has no more.
    Plan plan_for(std::size_t s)
    {
        const os::VariableSection& section = sections_[s];
        Plan plan{section.module, section.identity, section.memory, section.size, {}};
        if (homes_[s].same_layout) {
            const Block& block = blocks_[homes_[s].block];
            plan.section = block.memory;
            for (const os::SectionVariable& variable : section.variables) {
                plan.values.push_back({variable_of(section, variable), nullptr, variable.offset, false});
            }
            for (const KeptVariable& kept : block.variables) {
                if (kept.retired) {
                    plan.values.push_back({kept.variable, block.memory + kept.offset, 0, true});
                }
            }
            return plan;
        }
        for (std::size_t i = 0; i < present_.size(); ++i) {
            if (present_places_[i].of != s) {
                continue;
            }
            const std::size_t k = matching_.of_present[i];
            const std::byte* const bytes = k == nothing ? nullptr : blocks_[kept_places_[k].of].memory + kept_at(k).offset;
            plan.values.push_back({present_[i], bytes, section.variables[present_places_[i].index].offset, false});
        }
        add_retired(homes_[s].block, plan);
        return plan;
    }

    void add_retired(std::size_t block, Plan& plan)
    {
        for (std::size_t k = 0; k < kept_.size(); ++k) {
            if (kept_places_[k].of == block && !matching_.kept_is_taken[k] && !kept_[k].name.empty()) {
                plan.values.push_back({kept_[k], blocks_[block].memory + kept_at(k).offset, 0, true});
            }
        }
    }

    Result<std::byte*> write(const Plan& plan, layout::DurableGlobals& entry)
    {
        if (entry.name[0] != '\0') {
            replaced_.push_back(engine_.image_base() + entry.image_offset);
        }
        return write_block(engine_.image_base(), heap_, plan, entry);
    }

    Result<void> put_back_section(std::size_t s)
    {
        const os::VariableSection& section = sections_[s];
        const Home& home = homes_[s];
        std::byte* copy = nullptr;
        if (home.same_layout && blocks_[home.block].has_table && section.module.substr(0, 47) == blocks_[home.block].entry->name) {
            copy = engine_.image_base() + blocks_[home.block].entry->image_offset;
        } else {
            layout::DurableGlobals* const entry = home.block != nothing ? blocks_[home.block].entry : free_entry();
            if (entry == nullptr) {
                return fail(SP_E_INVALID_ARGUMENT, 0,
                            "the pool already keeps the SP_PERSISTENT variables of {} modules, the maximum; there is no room for {}",
                            layout::durable_globals_max, section.module);
            }
            auto written = write(plan_for(s), *entry);
            if (!written) {
                return pass_on(written.error());
            }
            copy = *written;
        }
        std::memcpy(section.memory, copy, section.size);
        sync_objects_add_mirror(section.memory, copy, section.size);
        return engine_.mirror({section.memory, copy, section.size});
    }

    /// A block of no section here, of which a variable has moved to another module: it must not be found twice.
    Result<void> shrink_others()
    {
        for (std::size_t b = 0; b < blocks_.size(); ++b) {
            bool gave = false;
            for (std::size_t k = 0; k < kept_.size(); ++k) {
                gave = gave || (kept_places_[k].of == b && matching_.kept_is_taken[k]);
            }
            if (!gave || is_home(b)) {
                continue;
            }
            Plan rest{blocks_[b].entry->name, 0, nullptr, 0, {}};
            add_retired(b, rest);
            if (auto written = write(rest, *blocks_[b].entry); !written) {
                return pass_on(written.error());
            }
        }
        return {};
    }

    Result<void> put_back()
    {
        for (std::size_t s = 0; s < sections_.size(); ++s) {
            if (auto done = put_back_section(s); !done) {
                return done;
            }
        }
        if (auto done = shrink_others(); !done) {
            return done;
        }
        for (std::byte* const old : replaced_) {
            if (heap_.find_block(old).begin == old) {
                release_block(heap_, old);
            }
        }
        return {};
    }

    /// Where a variable of a list comes from.
    struct Place {
        std::size_t of;     ///< section or block
        std::size_t index;  ///< of the variable in it
    };

    Engine& engine_;
    Heap& heap_;
    const Heap::Options& options_;
    std::vector<os::VariableSection> sections_;
    std::vector<Block> blocks_;
    std::vector<Home> homes_;  ///< one for each section
    std::vector<Variable> present_;
    std::vector<Place> present_places_;
    std::vector<Variable> kept_;
    std::vector<Place> kept_places_;
    Matching matching_;
    std::vector<std::byte*> replaced_;
};

}  // namespace

Result<void> restore_durable_globals(Engine& engine, Heap& heap, const Heap::Options& sound, bool accept)
{
    return GlobalsRestore(engine, heap, sound).run(accept);
}

bool has_durable_globals()
{
    std::array<os::LoadedSection, 1> section{};
    return os::find_sections(section_name, section.data(), section.size()) != 0;
}

}  // namespace stillpoint

#include "runtime/durable_globals_match.hpp"

#include <algorithm>
#include <array>

namespace stillpoint::durable_globals {

namespace {

/// The properties that two variables must have in common to be the same one, from the strictest rule to the loosest.
struct Rule {
    bool module;
    bool scope;
    bool whole_name;  ///< else the last part of it: the pool may know the name without its namespaces, or the program
};
constexpr std::array<Rule, 5> rules{
    {{true, true, true}, {false, true, true}, {true, false, true}, {false, false, true}, {false, false, false}}};

bool agree(const Rule& rule, const Variable& a, const Variable& b)
{
    return !a.name.empty() && !b.name.empty() && (!rule.module || a.module == b.module) && (!rule.scope || a.scope == b.scope) &&
           (rule.whole_name ? a.name == b.name : a.base() == b.base());
}

class Matcher {
public:
    Matcher(const std::vector<Variable>& present, const std::vector<Variable>& kept) : present_(present), kept_(kept)
    {
        result_.of_present.assign(present.size(), nothing);
        result_.kept_is_taken.assign(kept.size(), false);
    }

    Matching run()
    {
        for (const Rule& rule : rules) {
            for (std::size_t i = 0; i < present_.size(); ++i) {
                match_one(rule, i);
            }
        }
        refuse_ambiguous();
        refuse_changed();
        return std::move(result_);
    }

private:
    void match_one(const Rule& rule, std::size_t i)
    {
        if (result_.of_present[i] != nothing) {
            return;
        }
        std::size_t candidate = nothing;
        for (std::size_t k = 0; k < kept_.size(); ++k) {
            if (!result_.kept_is_taken[k] && agree(rule, present_[i], kept_[k])) {
                if (candidate != nothing) {
                    return;
                }
                candidate = k;
            }
        }
        if (candidate == nothing) {
            return;
        }
        for (std::size_t other = 0; other < present_.size(); ++other) {
            if (other != i && result_.of_present[other] == nothing && agree(rule, present_[other], kept_[candidate])) {
                return;
            }
        }
        result_.of_present[i] = candidate;
        result_.kept_is_taken[candidate] = true;
    }

    void refuse_ambiguous()
    {
        constexpr Rule loosest = rules.back();
        for (std::size_t i = 0; i < present_.size(); ++i) {
            for (std::size_t k = 0; k < kept_.size() && result_.of_present[i] == nothing; ++k) {
                if (!result_.kept_is_taken[k] && agree(loosest, present_[i], kept_[k])) {
                    result_.refused.push_back(
                        text_of("{}: there are several of that name, in the pool or in the program", present_[i].name));
                    break;
                }
            }
        }
    }

    void refuse_changed()
    {
        for (std::size_t i = 0; i < present_.size(); ++i) {
            const std::size_t k = result_.of_present[i];
            if (k == nothing) {
                continue;
            }
            const Variable& now = present_[i];
            const Variable& then = kept_[k];
            if (now.size != then.size) {
                result_.refused.push_back(text_of("{}: {} bytes then, {} now", now.name, then.size, now.size));
            } else if (!now.type.empty() && !then.type.empty() && now.type != then.type) {
                result_.refused.push_back(text_of("{}: {} then, {} now", now.name, then.type, now.type));
            } else {
                continue;
            }
            result_.of_present[i] = nothing;
        }
    }

    const std::vector<Variable>& present_;
    const std::vector<Variable>& kept_;
    Matching result_;
};

}  // namespace

std::string_view Variable::base() const noexcept
{
    const std::size_t colons = name.rfind("::");
    return colons == std::string::npos ? std::string_view(name) : std::string_view(name).substr(colons + 2);
}

Matching match(const std::vector<Variable>& present, const std::vector<Variable>& kept) { return Matcher(present, kept).run(); }

}  // namespace stillpoint::durable_globals

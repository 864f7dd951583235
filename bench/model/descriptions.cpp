#include "descriptions.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

#include "json_value.hpp"

namespace bench::model {
namespace {

/// Members of a description; each is taken once, and none may be left.
class Facts {
public:
    explicit Facts(const JsonValue::Object& members) : members_(members)
    {
        for (const auto& [name, value] : members) {
            left_.insert(name);
        }
    }

    const JsonValue& take(std::string_view name)
    {
        const auto found = members_.find(name);
        if (found == members_.end()) {
            throw std::runtime_error(fmt::format("\"{}\" is missing", name));
        }
        left_.erase(found->first);
        return found->second;
    }

    double number(std::string_view name, double least)
    {
        const double value = take(name).number(name);
        if (!(value >= least)) {
            throw std::runtime_error(fmt::format("\"{}\" is {}; it must be at least {}", name, value, least));
        }
        return value;
    }

    const std::string& text(std::string_view name) { return take(name).text(name); }

    void take_source()
    {
        if (text("source").empty()) {
            throw std::runtime_error("\"source\" is empty: say where the figures come from");
        }
    }

    void expect_none_left() const
    {
        if (!left_.empty()) {
            throw std::runtime_error(fmt::format("\"{}\" is not a fact that the model knows", *left_.begin()));
        }
    }

private:
    const JsonValue::Object& members_;
    std::set<std::string, std::less<>> left_;
};

/// The number of {"value": ..., "source": "..."}.
double sourced(Facts& facts, std::string_view name, double least)
{
    Facts fact(facts.take(name).object(name));
    fact.take_source();
    try {
        const double value = fact.number("value", least);
        fact.expect_none_left();
        return value;
    } catch (const std::runtime_error& error) {
        throw std::runtime_error(fmt::format("\"{}\": {}", name, error.what()));
    }
}

Machine machine_of(Facts facts)
{
    Machine machine;
    machine.name = facts.text("name");
    machine.says = facts.text("says");
#define MACHINE_COST(cost, least) machine.cost = sourced(facts, #cost, least);
#include "machine.inc"
#undef MACHINE_COST
    facts.expect_none_left();
    return machine;
}

Area area_of(Facts facts)
{
    Area area{facts.text("name"), facts.number("units", 1), facts.number("lines_of_unit", 1)};
    facts.take_source();
    facts.expect_none_left();
    return area;
}

Accesses accesses_of(Facts facts, const std::vector<Area>& areas)
{
    const auto area = std::ranges::find(areas, facts.text("area"), &Area::name);
    if (area == areas.end()) {
        throw std::runtime_error("an access to an area that \"areas\" does not have");
    }
    const Accesses accesses{static_cast<std::size_t>(area - areas.begin()), facts.number("read_units", 0),
                            facts.number("written_units", 0)};
    facts.expect_none_left();
    return accesses;
}

TransactionClass class_of(Facts facts, const std::vector<Area>& areas)
{
    TransactionClass one;
    one.name = facts.text("name");
    facts.take_source();
#define CLASS_FACT(fact, least) one.fact = facts.number(#fact, least);
#include "workload.inc"
#undef CLASS_FACT
    for (const JsonValue& value : facts.take("accesses").array("accesses")) {
        one.accesses.push_back(accesses_of(Facts(value.object("an access")), areas));
    }
    facts.expect_none_left();
    return one;
}

Workload workload_of(Facts facts)
{
    Workload workload;
    workload.name = facts.text("name");
    workload.says = facts.text("says");
    for (const JsonValue& value : facts.take("areas").array("areas")) {
        workload.areas.push_back(area_of(Facts(value.object("an area"))));
    }
    double shares = 0;
    for (const JsonValue& value : facts.take("classes").array("classes")) {
        workload.classes.push_back(class_of(Facts(value.object("a class")), workload.areas));
        shares += workload.classes.back().share;
    }
    if (std::abs(shares - 1) > 1e-6) {
        throw std::runtime_error(fmt::format("the shares of the classes add up to {}, not to 1", shares));
    }
    facts.expect_none_left();
    return workload;
}

template <class Description>
Description read_description(const std::string& path, Description (*description_of)(Facts))
{
    const JsonValue value = read_json_file(path);
    try {
        return description_of(Facts(value.object("the file")));
    } catch (const std::runtime_error& error) {
        throw std::runtime_error(fmt::format("{}: {}", path, error.what()));
    }
}

}  // namespace

Machine read_machine(const std::string& path) { return read_description(path, machine_of); }
void change_machine(Machine& machine, const std::string& word)
{
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const double value = equals == std::string::npos ? -1 : parse_json(word.substr(equals + 1)).number(name);
#define MACHINE_COST(cost, least)                                                                                                          \
    if (name == #cost && value >= least) {                                                                                                 \
        machine.cost = value;                                                                                                              \
        return;                                                                                                                            \
    }
#include "machine.inc"
#undef MACHINE_COST
    throw std::runtime_error(fmt::format("\"{}\" is not a cost of machine.inc with a value that it can have: write name=value", word));
}

Workload read_workload(const std::string& path) { return read_description(path, workload_of); }

}  // namespace bench::model

#include "descriptions.hpp"

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

    /// The value of {"value": ..., "source": "..."}.
    const JsonValue& sourced(std::string_view name)
    {
        const JsonValue& fact = take(name);
        if (fact.member("source").text("source").empty()) {
            throw std::runtime_error(fmt::format("\"{}\" has no source", name));
        }
        return fact.member("value");
    }

    double number(std::string_view name, double least)
    {
        const double value = sourced(name).number(name);
        if (value < least) {
            throw std::runtime_error(fmt::format("\"{}\" is {}; it must be at least {}", name, value, least));
        }
        return value;
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

Machine machine_of(Facts facts)
{
    Machine machine;
    machine.name = facts.take("name").text("name");
    machine.says = facts.take("says").text("says");
#define MACHINE_COST(cost, least) machine.cost = facts.number(#cost, least);
#include "machine.inc"
#undef MACHINE_COST
    facts.expect_none_left();
    return machine;
}

Workload workload_of(Facts facts)
{
    Workload workload;
    workload.name = facts.take("name").text("name");
    workload.says = facts.take("says").text("says");
#define WORKLOAD_FACT(fact, least) workload.fact = facts.number(#fact, least);
#include "workload.inc"
#undef WORKLOAD_FACT
    for (const JsonValue& value : facts.sourced("areas").array("areas")) {
        const Area area{value.member("lines").number("lines"), value.member("read_lines").number("read_lines"),
                        value.member("written_lines").number("written_lines")};
        if (area.lines < 1 || area.read_lines < 0 || area.written_lines < 0) {
            throw std::runtime_error("\"areas\": an area needs at least one line, and no number may be negative");
        }
        workload.areas.push_back(area);
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
Workload read_workload(const std::string& path) { return read_description(path, workload_of); }

}  // namespace bench::model

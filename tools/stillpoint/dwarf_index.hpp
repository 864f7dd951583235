#pragma once
// The named types and the variables of a file with debug information: found once, read when they are asked for.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

#include "program_types.hpp"

namespace stillpoint::tool {

/// The number that an attribute has; `otherwise` where it has none.
[[nodiscard]] std::uint64_t number_of(Dwarf_Die& die, unsigned attribute, std::uint64_t otherwise);
[[nodiscard]] bool has_flag(Dwarf_Die& die, unsigned attribute);
/// The entry that an attribute refers to; false: none.
[[nodiscard]] bool referred(Dwarf_Die& die, unsigned attribute, Dwarf_Die& found);

inline constexpr std::uint64_t not_said = UINT64_MAX;
/// The place of a member in its record; not_said: it depends on the object (a virtual base).
[[nodiscard]] std::uint64_t offset_of(Dwarf_Die& member);
/// Where a variable lies in the file; nullopt: nowhere, or not at one place: it is a thread's own, or lies in a register.
[[nodiscard]] std::optional<std::uint64_t> address_of(Dwarf_Die& variable);

/// Calls visit(child) for each child, until it returns false.
template <class Visit>
void for_each_child(Dwarf_Die& die, Visit&& visit)
{
    Dwarf_Die child;
    if (dwarf_child(&die, &child) != 0) {
        return;
    }
    for (;;) {
        const void* const here = child.addr;
        if (!visit(child) || dwarf_siblingof(&child, &child) != 0 || child.addr <= here) {
            return;  // A damaged file may lead back: siblings lie one after the other.
        }
    }
}

class DwarfIndex {
public:
    /// Errors: no such file, no program, no debug information.
    [[nodiscard]] static tl::expected<std::unique_ptr<DwarfIndex>, ProgramError> open(const std::string& path);

    struct Variable {
        Dwarf_Die die;  ///< that has the place
        std::string file;
    };

    /// The definition of a type; nullptr: none. Spaces and the order of words like "unsigned" do not matter.
    [[nodiscard]] Dwarf_Die* type_named(std::string_view name);
    /// The type whose name begins so and goes on with "," or ">"; nullptr: none, or several.
    [[nodiscard]] Dwarf_Die* instance_named(std::string_view beginning);
    [[nodiscard]] const std::vector<Variable>* variables_named(std::string_view name) const;
    template <class Visit>
    void for_each_variable(Visit&& visit) const
    {
        for (const auto& [name, variables] : variables_) {
            for (const Variable& variable : variables) {
                visit(name, variable);
            }
        }
    }
    /// Marked by the headers for C++ (stillpoint/durable_class.hpp).
    [[nodiscard]] const std::vector<Dwarf_Die>& durable_classes() const noexcept { return durable_classes_; }
    /// With its namespaces; empty: not in the index.
    [[nodiscard]] std::string_view qualified_name(const Dwarf_Die& die) const;
    [[nodiscard]] std::vector<std::string> names_with(std::string_view part) const;

private:
    struct DwflEnd {
        void operator()(Dwfl* dwfl) const noexcept { dwfl_end(dwfl); }
    };
    struct NamedType {
        Dwarf_Die die;
        bool is_declaration;
    };

    void read_units(Dwarf* dwarf);
    void read_children(Dwarf_Die& parent, const std::string& scope, const std::string& file, unsigned depth);
    void read_child(Dwarf_Die& child, const std::string& scope, const std::string& file, unsigned depth);
    void add_type(Dwarf_Die& die, const std::string& name);
    void add_durable_class(Dwarf_Die& instance);
    void add_variable(Dwarf_Die& die, const std::string& scope, const std::string& file);

    std::unique_ptr<Dwfl, DwflEnd> dwfl_;
    std::unordered_map<std::string, NamedType> types_;
    std::unordered_map<std::string, std::vector<Variable>> variables_;
    std::vector<Dwarf_Die> durable_classes_;
    std::unordered_map<const void*, std::string> qualified_;  ///< by the address of the entry
};

}  // namespace stillpoint::tool

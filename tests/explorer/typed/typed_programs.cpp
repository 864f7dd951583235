// The programs. Each digest follows every pointer, so an object that was freed, or is of another transaction, shows.

#include <algorithm>
#include <stdexcept>

#include "typed/typed_stores.hpp"

namespace stillpoint::explorer {

const std::vector<TypedProgramEntry>& typed_programs()
{
    static const std::vector<TypedProgramEntry> programs = {
        {"lists", [] { return make_lists(ListsKind::whole); }, 12},
        {"tree", &make_tree, 12},
        {"rings", &make_rings, 12, 1, true},
        {"shapes", &make_shapes, 10, 1, true},
        {"threads", [] { return make_lists(ListsKind::divided); }, 8, 2},
        {"makers", [] { return make_lists(ListsKind::growing); }, 3, 1, false, true},
        {"reuse", [] { return make_lists(ListsKind::reusing); }, 4, 1, false, true},
    };
    return programs;
}

const TypedProgramEntry& typed_program_called(std::string_view name)
{
    const auto found = std::ranges::find(typed_programs(), name, &TypedProgramEntry::name);
    if (found == typed_programs().end()) {
        throw std::runtime_error("there is no typed program " + std::string(name));
    }
    return *found;
}

}  // namespace stillpoint::explorer

#include "engines/breeze/salvage_holder.hpp"

#include <array>
#include <cstring>

#include "engines/breeze/type_descriptions.hpp"

namespace stillpoint::breeze {

namespace {

nvm_field entry(const char* name, std::uint32_t kind) noexcept
{
    nvm_field made{};
    std::strncpy(made.name, name, sizeof made.name - 1);
    made.kind = kind;
    return made;
}

}  // namespace

Result<SalvageHolder> SalvageHolder::make()
{
    std::array<nvm_field, 4> entries = {entry(type_name, NVM_FIELD_TYPE), entry("count", NVM_FIELD_DATA),
                                        entry("objects", NVM_FIELD_POINTER), entry("pinned", NVM_FIELD_PINNED)};
    entries[0].count = sizeof(std::uint64_t);
    entries[0].tag_value = NVM_TYPE_MAGIC;
    entries[0].element_bytes = sizeof(nvm_field);
    entries[1].count = 1;
    entries[1].element_bytes = sizeof(std::uint64_t);
    entries[1].encoding = NVM_DATA_UNSIGNED;
    entries[2].offset_bytes = sizeof(std::uint64_t);
    auto described = types_of_entries(entries, [](std::uint32_t) { return nullptr; });
    if (!described) {
        return pass_on(described.error());
    }
    return SalvageHolder(described->front().type);
}

}  // namespace stillpoint::breeze

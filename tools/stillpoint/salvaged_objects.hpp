#pragma once
// `stillpoint salvage` of a pool whose objects the engine knows: what is kept, and what is listed.

#include <string>
#include <string_view>

#include "new_file.hpp"
#include "pool_access.hpp"

namespace stillpoint::tool {

struct ObjectSalvageNames {
    const std::string& path;
    const std::string& new_path;
    bool json;
};

/// Makes the new pool, gives it its name, and prints the report. `opened` is only read. The exit code.
[[nodiscard]] int salvage_objects(const OpenedPool& opened, const ObjectSalvageNames& names, const NewFile& file, bool progress);

}  // namespace stillpoint::tool

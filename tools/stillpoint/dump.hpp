#pragma once
// `stillpoint dump`, for pools of both kinds: typed objects, and images with handles .

#include <cstdint>
#include <optional>
#include <string>

#include "pool_access.hpp"
#include "typed_roots.hpp"

namespace stillpoint::tool {

struct DumpArguments {
    std::string path;
    bool json = false;
    std::string root;  ///< empty: all
    std::optional<std::uint64_t> limit;
    std::optional<std::uint64_t> depth;
    std::uint64_t bytes = 64;
    std::string program;
    HandleTypes types;
};

int dump_objects(const DumpArguments& arguments, const OpenedPool& opened);
int dump_image(const DumpArguments& arguments, const OpenedPool& opened, bool progress);

}  // namespace stillpoint::tool
